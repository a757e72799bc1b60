/** Claude Code: `claude` of the package `@anthropic-ai/claude-code`. */
import { folderIn, printed, runsProgram, type HookClient } from './hook-client.js'

const context = (hookEventName: string, additionalContext: string) =>
  printed({ hookSpecificOutput: { hookEventName, additionalContext } })

export const claude: HookClient = {
  name: 'claude',
  title: 'Claude Code',
  seen: '2.1.332',
  isNamed: (name) => name === 'claude-code',
  isProgram: runsProgram(/^claude(\.exe)?$|claude-code/),
  // `cli` is the interactive client. The others are `sdk-cli` (`claude -p`), `sdk-ts` and `sdk-py`.
  isHeadless: ({ env }) => env['CLAUDE_CODE_ENTRYPOINT']?.startsWith('sdk-') === true,
  sessionVariable: 'CLAUDE_CODE_SESSION_ID',
  maxContinuations: 8,
  stopMs: 650_000,
  toolMs: 600_000,
  wakesIdle: true,
  // A context reaches the model once. A block reaches it twice, and looks like a problem on the screen.
  stopAnswer: (text) => context('Stop', text),
  promptAnswer: (text) => context('UserPromptSubmit', text),
  wakeAnswer: (text) => ({ stdout: '', stderr: text, exitCode: 2 }),
  transcripts: (env) => {
    const folder = folderIn(env, 'CLAUDE_CONFIG_DIR', '.claude')
    return folder === undefined ? undefined : `${folder}/projects`
  },
  replayedText: ({ type, isSidechain, message, attachment }) => {
    if (isSidechain === true) return undefined
    if (type === 'user' || type === 'assistant') return message
    const { type: kind, content } = Object(attachment) as { type?: unknown; content?: unknown }
    return type === 'attachment' && kind === 'hook_additional_context' ? content : undefined
  },
}
