/** The types of `agent-tasks/acp`. */
import { expectTypeOf } from 'vitest'
import { createAgentTasks, type OutputRunner } from 'agent-tasks'
import { acpRunner } from 'agent-tasks/acp'
import type { AcpPermissions } from '../../src/runners/acp/acp-options.js'

export function anAgentAsASubagent(): void {
  const runner = acpRunner({
    command: 'gemini',
    args: ['--acp'],
    env: { GEMINI_API_KEY: undefined },
    permissions: { read: 'allow', default: 'ask' },
    commands: { allow: ['npm'], env: ['CI'] },
  })
  expectTypeOf(runner).toEqualTypeOf<OutputRunner>()
  createAgentTasks({ subagents: { coder: runner } })
  expectTypeOf<'allow'>().toExtend<AcpPermissions>()
  // @ts-expect-error what it may do must be said
  acpRunner({ command: 'gemini' })
  // @ts-expect-error ACP has no such kind
  acpRunner({ command: 'gemini', permissions: { write: 'allow' } })
  // @ts-expect-error a terminal has no deadline
  acpRunner({ command: 'gemini', permissions: 'ask', commands: { allow: [], maxTimeoutSeconds: 5 } })
}
