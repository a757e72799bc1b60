/** Gemini CLI: `gemini` of the package `@google/gemini-cli`. */
import { folderIn, hasOption, printed, runsProgram, type HookClient } from './hook-client.js'
import { defined, hookCommand, inHome, type HookSetup, type HookTarget } from './hook-setup.js'

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

export const geminiSetup: HookSetup = {
  file: (place) =>
    place.scope === 'project' ? `${place.folder}/.gemini/settings.json` : inHome(place, '.gemini/settings.json'),
  isCommitted: true,
  serverFiles: (place) => defined(`${place.folder}/.gemini/settings.json`, inHome(place, '.gemini/settings.json')),
  trust:
    'Gemini CLI runs hooks of the user without a question, and those of a project only in a folder that you trust.',
  entries: (target) => [
    { path: ['hooks', 'SessionStart'], value: group(target, 'start', 10_000) },
    { path: ['hooks', 'BeforeAgent'], value: group(target, 'prompt', 10_000) },
    // In ms.
    { path: ['hooks', 'AfterAgent'], value: group(target, 'stop', 610_000) },
  ],
}

const group = (target: HookTarget, event: string, timeout: number): object => ({
  matcher: '*',
  hooks: [{ type: 'command', command: hookCommand(target, event, 'gemini'), timeout }],
})
