/** Copilot CLI: `copilot` of the package `@github/copilot`. */
import { folderIn, hasOption, printed, runsProgram, type HookClient } from './hook-client.js'
import { defined, hookCommand, type HookSetup, type HookTarget } from './hook-setup.js'

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

export const copilotSetup: HookSetup = {
  file: ({ scope, folder, env }) => {
    const own = folderIn(env, 'COPILOT_HOME', '.copilot')
    if (scope === 'project') return `${folder}/.github/hooks/agent-tasks.json`
    return own === undefined ? undefined : `${own}/hooks/agent-tasks.json`
  },
  isCommitted: true,
  serverFiles: ({ env }) => {
    const own = folderIn(env, 'COPILOT_HOME', '.copilot')
    return defined(own && `${own}/mcp-config.json`)
  },
  trust:
    'Copilot CLI runs hooks of the user without a question, and those of a repository only in a folder that you trust.',
  text: (target) => {
    const hooks = {
      sessionStart: [entry(target, 'start', 10)],
      userPromptSubmitted: [entry(target, 'prompt', 10)],
      agentStop: [entry(target, 'stop', 320)],
    }
    return `${JSON.stringify({ version: 1, hooks }, null, 2)}\n`
  },
  isOwn: (text) => /hook stop --client copilot"/.test(text),
}

const entry = (target: HookTarget, event: string, timeoutSec: number): object => ({
  type: 'command',
  bash: hookCommand(target, event, 'copilot'),
  timeoutSec,
})
