/** Qwen Code: `qwen` of the package `@qwen-code/qwen-code`. Its transcript does not have what a hook has answered at the end of a turn. */
import { folderIn, hasOption, printed, runsProgram, type HookClient } from './hook-client.js'

export const qwen: HookClient = {
  name: 'qwen',
  title: 'Qwen Code',
  seen: '0.24.4',
  isNamed: (name) => name.startsWith('qwen-'),
  isProgram: runsProgram(/^qwen(\.js)?$|qwen-code/),
  isHeadless: ({ args }) => hasOption(args, ['-p', '--prompt']),
  sessionVariable: 'QWEN_CODE_SESSION_ID',
  maxContinuations: 8,
  // A hook that takes more than 60 s ends the run with code 1.
  stopMs: 50_000,
  toolMs: 290_000,
  stopAnswer: (reason) => printed({ decision: 'block', reason }),
  promptAnswer: (additionalContext) =>
    printed({ hookSpecificOutput: { hookEventName: 'UserPromptSubmit', additionalContext } }),
  transcripts: (env) => folderIn(env, undefined, '.qwen', 'projects'),
  replayedText: ({ type, message }) => (type === 'user' || type === 'assistant' ? message : undefined),
}
