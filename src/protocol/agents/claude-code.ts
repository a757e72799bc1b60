/** Claude Code: `claude` of the package `@anthropic-ai/claude-code`. */
import type { AgentPreset } from './agent-preset.js'

const base = ['-p', '--output-format', 'stream-json', '--verbose', '{access}', '{args}']

export const claudeCode: AgentPreset = {
  seen: '2.1.332',
  start: [...base, '--', '{goal}'],
  resume: [...base, '--resume', '{session}', '--', '{message}'],
  access: {
    read: ['--permission-mode', 'dontAsk'],
    write: ['--permission-mode', 'acceptEdits'],
    full: ['--permission-mode', 'bypassPermissions'],
  },
  session: 'jsonl:system/session_id',
  result: 'jsonl:result/result',
  // It waits for its background shells, and may then ask the model again and print another result.
  goesOn: true,
  done: 'jsonl:result/subtype',
  // Also with exit code 0. When the turns are used up, the line has `errors` and no result.
  failure: ['jsonl:result[is_error=true]/subtype'],
  reason: ['jsonl:result[is_error=true]/errors', 'jsonl:result[is_error=true]/result'],
  rateLimit: '\\b429\\b|rate.?limit|usage limit',
  denied: 'jsonl:result/permission_denials',
  deniedName: 'tool_name',
  usage: {
    inputTokens: 'jsonl:result/usage.input_tokens',
    cachedInputTokens: 'jsonl:result/usage.cache_read_input_tokens',
    outputTokens: 'jsonl:result/usage.output_tokens',
    costUsd: 'jsonl:result/total_cost_usd',
  },
}
