/** Copilot CLI: `copilot` of the package `@github/copilot`. */
import type { AgentPreset } from './agent-preset.js'

const base = ['--output-format', 'json', '{access}', '{trust}', '{args}']

export const copilot: AgentPreset = {
  seen: '1.0.102',
  // One argument, because a goal that begins with `-` is an option otherwise. The id is given, because it prints that of its own only at the end.
  start: [...base, '--session-id={session}', '--prompt={goal}'],
  resume: [...base, '--resume={session}', '--prompt={message}'],
  access: {
    // Commands that only read need no permission.
    read: ['--deny-tool=write'],
    write: ['--allow-tool=write'],
    full: ['--allow-all'],
  },
  // The variable gives full access.
  accessEnv: { read: { COPILOT_ALLOW_ALL: 'false' }, write: { COPILOT_ALLOW_ALL: 'false' } },
  // It works in any folder, and with this also with the skills and agents of the folder. It refuses `--trust-folder` for a session whose id is given.
  trust: ['--add-dir=.'],
  session: 'jsonl:result/sessionId',
  result: 'jsonl:assistant.message/data.content',
  done: 'jsonl:result[exitCode=0]/type',
  failure: ['jsonl:session.error/type'],
  reason: ['jsonl:session.error/data.message'],
  rateLimit: '\\b429\\b|rate.?limit|quota',
  denied: 'jsonl:tool.execution_complete[data.error.code=denied]/data.toolCallId',
  deniedCall: 'jsonl:tool.execution_start[data.toolCallId={denied}]/data.toolName',
}
