/** Codex: `codex` of the package `@openai/codex`. */
import { folderIn, printed, runsProgram, type HookClient } from './hook-client.js'

const ROLES: readonly unknown[] = ['user', 'assistant', 'developer']

export const codex: HookClient = {
  name: 'codex',
  title: 'Codex',
  seen: '0.171.0',
  isNamed: (name) => name === 'codex-mcp-client',
  isProgram: runsProgram(/^codex(\.exe|\.js)?$/),
  isHeadless: ({ args }) => args.slice(1, 3).some((argument) => argument === 'exec' || argument === 'e'),
  hasManySessions: true,
  stopMs: 290_000,
  toolMs: 290_000,
  stopAnswer: (reason) => printed({ decision: 'block', reason }),
  promptAnswer: (additionalContext) =>
    printed({ hookSpecificOutput: { hookEventName: 'UserPromptSubmit', additionalContext } }),
  transcripts: (env) => {
    const folder = folderIn(env, 'CODEX_HOME', '.codex')
    return folder === undefined ? undefined : `${folder}/sessions`
  },
  replayedText: ({ type, payload }) => {
    const { type: kind, role, content } = Object(payload) as { type?: unknown; role?: unknown; content?: unknown }
    return type === 'response_item' && kind === 'message' && ROLES.includes(role) ? content : undefined
  },
}
