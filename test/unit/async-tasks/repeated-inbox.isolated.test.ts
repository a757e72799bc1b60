/** A task that takes messages takes them in every attempt, also in one that waits for the program of the last one to end. */
import { expect, it, onTestFinished, vi } from 'vitest'
import { AsyncTaskManager, functionRunner } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { tick } from '../../support/limited-tasks.js'

// When a program that was killed has ended is up to the system.
const left = vi.hoisted(() => ({ isLeft: true }))
vi.mock('../../../src/engine/reap.js', async (load) => ({ ...(await load<object>()), isLeft: () => left.isLeft }))

it('F7: a repeated task takes messages when the program of its last attempt had to be killed', async () => {
  const program = { identity: { pid: 2 ** 22 + 1, start: '1', boot: 'of an earlier life' }, token: 'token' }
  const taken: string[] = []
  const run = functionRunner(
    async (_input, { messages, attempt, durability }) => {
      if (attempt === 1) await durability?.saveProgram(program)
      for await (const message of messages) {
        taken.push(`${attempt}: ${message}`)
        if (message === 'end') break
      }
      return 'done'
    },
    { takesMessages: true },
  )
  const retry = { attempts: 2, on: ['interrupted'] } as const
  const store = memoryStore()
  const first = new AsyncTaskManager({ store, clock: createManualClock(), graceMs: 0 })
  onTestFinished(() => first.dispose())
  first.launch({ id: 'a', subagentName: 's', goalPrompt: 'g' }, { run, retry })
  await tick()
  expect(first.sendToTask('a', 'one')).toEqual({ sent: true })
  const clock = createManualClock()
  const second = new AsyncTaskManager({ store: store.copy(), clock, findRunner: () => ({ run, retry }) })
  onTestFinished(() => second.dispose())
  expect(await second.recovered).toMatchObject({ retried: ['a'] })
  left.isLeft = false
  clock.advance(50)
  await tick()
  expect(second.sendToTask('a', 'two')).toEqual({ sent: true })
  expect(second.sendToTask('a', 'end')).toEqual({ sent: true })
  await tick()
  expect(taken).toEqual(['1: one', '2: two', '2: end'])
  expect(second.getTask('a')).toMatchObject({ status: 'completed', attempt: 2, messagesSent: 2 })
  expect(clock.pending).toBe(0)
})
