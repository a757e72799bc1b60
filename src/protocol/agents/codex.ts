/** Codex: `codex` of the package `@openai/codex`. */
import type { AgentPreset } from './agent-preset.js'

const base = ['exec', '--json', '{access}', '{trust}', '{args}']

export const codex: AgentPreset = {
  seen: '0.171.0',
  start: [...base, '--', '{goal}'],
  // `resume` itself knows no --sandbox, so the options are before it.
  resume: [...base, 'resume', '{session}', '--', '{message}'],
  access: {
    read: ['--sandbox', 'read-only'],
    write: ['--sandbox', 'workspace-write'],
    full: ['--sandbox', 'danger-full-access'],
  },
  trust: ['--skip-git-repo-check'],
  untrusted: 'Not inside a trusted directory',
  session: 'jsonl:thread.started/thread_id',
  result: 'jsonl:item.completed[item.type=agent_message]/item.text',
  done: 'jsonl:turn.completed/type',
  failure: ['jsonl:turn.failed/type'],
  reason: ['jsonl:turn.failed/error.message', 'jsonl:error/message'],
  // It says only that a command has failed, and what the command has printed. It sometimes prints nothing about a command that ends at once.
  denied: 'jsonl:item.completed[item.type=command_execution][item.status=failed]/item.command',
  deniedLine: 'Read-only file system|Operation not permitted|Permission denied',
  rateLimit: '\\b429\\b|rate.?limit|usage limit',
  usage: {
    inputTokens: 'jsonl:turn.completed/usage.input_tokens',
    cachedInputTokens: 'jsonl:turn.completed/usage.cached_input_tokens',
    outputTokens: 'jsonl:turn.completed/usage.output_tokens',
    isCumulative: true,
  },
}
