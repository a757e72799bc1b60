/** Qwen Code: `qwen` of the package `@qwen-code/qwen-code`. Its transcript does not have what a hook has answered at the end of a turn. */
import { folderIn, hasOption, printed, runsProgram, type HookClient } from './hook-client.js'
import { defined, hookCommand, inHome, type HookSetup, type HookTarget } from './hook-setup.js'

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

export const qwenSetup: HookSetup = {
  file: (place) =>
    place.scope === 'project' ? `${place.folder}/.qwen/settings.json` : inHome(place, '.qwen/settings.json'),
  isCommitted: true,
  serverFiles: (place) => defined(`${place.folder}/.qwen/settings.json`, inHome(place, '.qwen/settings.json')),
  trust: 'Qwen Code runs hooks of the user without a question.',
  entries: (target) => [
    { path: ['hooks', 'SessionStart'], value: group(target, 'start', 10_000) },
    { path: ['hooks', 'UserPromptSubmit'], value: group(target, 'prompt', 10_000) },
    // In ms.
    { path: ['hooks', 'Stop'], value: group(target, 'stop', 60_000) },
  ],
}

const group = (target: HookTarget, event: string, timeout: number): object => ({
  hooks: [{ type: 'command', command: hookCommand(target, event, 'qwen'), timeout }],
})
