/** Gemini CLI: `gemini` of the package `@google/gemini-cli`. */
import type { AgentPreset } from './agent-preset.js'

const base = ['--output-format', 'stream-json', '{access}', '{trust}', '{args}']

export const gemini: AgentPreset = {
  seen: '0.61.0',
  // One argument, because a goal that begins with `-` is an option otherwise.
  start: [...base, '--prompt={goal}'],
  resume: [...base, '--resume', '{session}', '--prompt={message}'],
  access: {
    read: ['--approval-mode', 'plan'],
    write: ['--approval-mode', 'auto_edit'],
    full: ['--approval-mode', 'yolo'],
  },
  trust: ['--skip-trust'],
  untrusted: 'not running in a trusted directory',
  // In its first line, so a session can be continued however it has ended.
  session: 'jsonl:init/session_id',
  result: 'jsonl:message[role=assistant]/content',
  isInParts: true,
  done: 'jsonl:result[status=success]/status',
  failure: ['jsonl:result[status=error]/status'],
  reason: ['jsonl:result[status=error]/error.message'],
  rateLimit: '\\b429\\b|rate.?limit|quota|RESOURCE_EXHAUSTED',
  usage: {
    inputTokens: 'jsonl:result/stats.input_tokens',
    cachedInputTokens: 'jsonl:result/stats.cached',
    outputTokens: 'jsonl:result/stats.output_tokens',
  },
}
