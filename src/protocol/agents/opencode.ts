/** opencode: `opencode` of the package `opencode-ai`. */
import type { AgentPreset } from './agent-preset.js'

const base = ['run', '--format', 'json', '{access}', '{args}']

export const opencode: AgentPreset = {
  seen: '1.18.33',
  start: [...base, '--', '{goal:words}'],
  resume: [...base, '--session', '{session}', '--', '{message:words}'],
  access: { read: [], write: [], full: ['--auto'] },
  // Its agent `plan` edits no files, but runs commands.
  accessEnv: { read: { OPENCODE_PERMISSION: '{"edit":"deny","bash":"deny"}' } },
  session: 'jsonl:step_start/sessionID',
  result: 'jsonl:text/part.text',
  done: 'jsonl:step_finish[part.reason=stop]/type',
  failure: ['jsonl:error/type'],
  reason: ['jsonl:error/error.data.message', 'jsonl:error/error.name'],
  rateLimit: '\\b429\\b|rate.?limit|too many requests|quota',
  usage: {
    inputTokens: 'jsonl:step_finish/part.tokens.input',
    cachedInputTokens: 'jsonl:step_finish/part.tokens.cache.read',
    outputTokens: 'jsonl:step_finish/part.tokens.output',
    costUsd: 'jsonl:step_finish/part.cost',
    isSummed: true,
  },
}
