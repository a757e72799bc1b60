/** Claude Code: `claude` of the package `@anthropic-ai/claude-code`. */
import { folderIn, printed, runsProgram, type HookClient } from './hook-client.js'
import { defined, hookCommand, inHome, type HookSetup } from './hook-setup.js'

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
  hooksCallTools: true,
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

const SESSION = { session_id: '${session_id}', transcript_path: '${transcript_path}' }

export const claudeSetup: HookSetup = {
  file: ({ scope, folder, env }) => {
    const own = folderIn(env, 'CLAUDE_CONFIG_DIR', '.claude')
    if (scope === 'project') return `${folder}/.claude/settings.local.json`
    return own === undefined ? undefined : `${own}/settings.json`
  },
  isCommitted: false,
  serverFiles: (place) => defined(`${place.folder}/.mcp.json`, inHome(place, '.claude.json')),
  trust: 'Claude Code runs these hooks without a question. It asks you once for an MCP server of `.mcp.json`.',
  entries: (target) => [
    {
      path: ['hooks', 'Stop'],
      value: {
        hooks: [
          {
            type: 'mcp_tool',
            server: target.server,
            tool: 'agent_tasks_stop',
            input: { ...SESSION, stop_hook_active: '${stop_hook_active}' },
            timeout: 660,
          },
          { type: 'command', command: hookCommand(target, 'wake', 'claude'), asyncRewake: true, timeout: 86_400 },
        ],
      },
    },
    {
      path: ['hooks', 'UserPromptSubmit'],
      value: {
        hooks: [
          {
            type: 'mcp_tool',
            server: target.server,
            tool: 'agent_tasks_prompt',
            input: { ...SESSION, prompt: '${prompt}' },
          },
        ],
      },
    },
  ],
}
