/** Whose context code of the host executes in, in any order of calls (H5). */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runs } from '../../src/async-tasks/run-plan.js'
import { taskEvents } from '../../src/async-tasks/task-events.js'
import { callContext } from '../../src/isolation/call-context.js'
import type { AgentTasks } from '../../src/index.js'
import { checkProperty } from '../support/property.js'
import { contextsProperty } from './contexts.property.js'

it('H5: no run, turn, command or handler sees the context of another call', async () => {
  await checkProperty('contexts', contextsProperty())
})

/** What is wrong, by name. */
const faults: Readonly<Record<string, (tasks: AgentTasks) => void>> = {
  'a run executes in the context of the call that started it': ({ manager }) => {
    manager.registry.use(runs).contextOf = () => callContext()
  },
  'a handler executes in the context of the call that ended the task': ({ manager }) => {
    const events = manager.registry.use(taskEvents)
    manager.onTaskCompleted = (handler) => {
      let since = manager.registry.seq
      events.ended = (_entry, { record, seq }) => {
        if (record.status === 'completed' && seq > since) handler(record)
        since = Math.max(since, seq)
      }
      return () => undefined
    }
  },
}

describe('a fault is found', () => {
  it.each(Object.entries(faults))('H5: %s', async (_, sabotage) => {
    const { failed } = await fc.check(contextsProperty(sabotage), { numRuns: 500, seed: 1, endOnFailure: true })
    expect(failed).toBe(true)
  })
})
