/** Qwen Code: `qwen` of the package `@qwen-code/qwen-code`. Its output has the fields of Claude Code, except for errors and the cost. */
import type { AgentPreset } from './agent-preset.js'

const base = ['--output-format', 'stream-json', '{access}', '{args}']

export const qwenCode: AgentPreset = {
  seen: '0.24.4',
  // One argument, because a goal that begins with `-` is an option otherwise. It does not read what follows `--`.
  start: [...base, '--prompt={goal}'],
  resume: [...base, '--resume', '{session}', '--prompt={message}'],
  access: {
    read: ['--approval-mode', 'default'],
    write: ['--approval-mode', 'auto-edit'],
    full: ['--approval-mode', 'yolo'],
  },
  session: 'jsonl:system/session_id',
  result: 'jsonl:result/result',
  done: 'jsonl:result/subtype',
  failure: ['jsonl:result[is_error=true]/subtype'],
  reason: ['jsonl:result[is_error=true]/error.message', 'jsonl:result[is_error=true]/result'],
  rateLimit: '\\b429\\b|rate.?limit|quota',
  denied: 'jsonl:result/permission_denials',
  deniedName: 'tool_name',
  usage: {
    inputTokens: 'jsonl:result/usage.input_tokens',
    cachedInputTokens: 'jsonl:result/usage.cache_read_input_tokens',
    outputTokens: 'jsonl:result/usage.output_tokens',
  },
}
