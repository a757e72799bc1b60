/** Copilot CLI: `copilot` of the package `@github/copilot`. */
import { folderIn, hasOption, printed, runsProgram, type HookClient } from './hook-client.js'

export const copilot: HookClient = {
  name: 'copilot',
  title: 'Copilot CLI',
  seen: '1.0.102',
  isNamed: (name) => name === 'copilot-cli' || name === 'github-copilot-developer',
  isProgram: runsProgram(/^copilot(\.js)?$|[/\\]copilot[/\\]/),
  isHeadless: ({ args }) => hasOption(args, ['-p', '--prompt']),
  sessionVariable: 'COPILOT_AGENT_SESSION_ID',
  maxContinuations: 8,
  stopMs: 310_000,
  toolMs: 170_000,
  stopAnswer: (reason) => printed({ decision: 'block', reason }),
  promptAnswer: (additionalContext) => printed({ additionalContext }),
  transcripts: (env) => folderIn(env, 'COPILOT_HOME', '.copilot', 'session-state'),
  replayedText: ({ type, data }) => {
    const { content, transformedContent } = Object(data) as { content?: unknown; transformedContent?: unknown }
    return type === 'user.message' || type === 'assistant.message' ? [content, transformedContent] : undefined
  },
}
