/** Gemini CLI: `gemini` of the package `@google/gemini-cli`. */
import { folderIn, hasOption, printed, runsProgram, type HookClient } from './hook-client.js'

export const gemini: HookClient = {
  name: 'gemini',
  title: 'Gemini CLI',
  seen: '0.61.0',
  isNamed: (name) => name === 'gemini-cli-mcp-client',
  isProgram: runsProgram(/^gemini(\.js)?$|gemini-cli/),
  isHeadless: ({ args }) => hasOption(args, ['-p', '--prompt']),
  stopMs: 600_000,
  toolMs: 590_000,
  stopAnswer: (reason) => printed({ decision: 'deny', reason }),
  promptAnswer: (additionalContext) =>
    printed({ hookSpecificOutput: { hookEventName: 'BeforeAgent', additionalContext } }),
  transcripts: (env) => folderIn(env, undefined, '.gemini', 'tmp'),
  replayedText: ({ type, content }) => (type === 'user' || type === 'gemini' ? content : undefined),
}
