/** The task chart by itself: T1 to T4. */
import { describe, expect, it, vi } from 'vitest'
import { createActor, transition } from 'xstate'
import { asyncTaskMachine, type AsyncTaskEvent } from '../../../machines/async-task.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

function start(input: { timeoutMs?: number; graceMs?: number } = {}) {
  const clock = createManualClock()
  const requestAbort = vi.fn()
  const actor = createActor(asyncTaskMachine.provide({ actions: { requestAbort } }), {
    clock: { setTimeout: (run, ms) => clock.setTimeout(run, ms), clearTimeout: (timer) => clock.clearTimeout(timer) },
    input: { id: 'a', subagentName: 'helper', graceMs: 100, ...input },
  })
  actor.start()
  return { actor, clock, requestAbort }
}

const ends: AsyncTaskEvent[] = [
  { type: 'task.complete', output: { final_message: 'done' } },
  { type: 'task.fail', error: 'broken' },
  { type: 'task.cancel' },
]

describe('a task', () => {
  it('T1: ends in exactly one way, and whatever arrives later changes nothing', () => {
    for (const first of ends) {
      for (const second of ends) {
        const { actor } = start()
        actor.send(first)
        const ended = actor.getSnapshot()
        expect(ended.status).toBe('done')
        // The actor has stopped and hears nothing more; the chart itself has no way out of its ends either.
        const [next] = transition(asyncTaskMachine, ended, second)
        expect(next).toMatchObject({ value: ended.value, status: 'done', output: ended.output })
      }
    }
  })

  it('T2: the event that ends it fixes status, output and error', () => {
    const outputs = ends.map((end) => {
      const { actor } = start()
      actor.send(end)
      return actor.getSnapshot().output
    })
    expect(outputs).toEqual([
      { status: 'completed', output: { final_message: 'done' } },
      { status: 'failed', error: 'broken' },
      { status: 'cancelled' },
    ])
  })

  it('T3: after its deadline it can only fail, unless someone cancels it first', () => {
    const outputs = ends.map((end) => {
      const { actor, clock, requestAbort } = start({ timeoutMs: 500 })
      clock.advance(500)
      expect(requestAbort).toHaveBeenCalledOnce()
      expect(actor.getSnapshot().value).toEqual({ running: 'overdue' })
      actor.send(end)
      expect(clock.pending).toBe(0)
      return actor.getSnapshot().output
    })
    expect(outputs).toEqual([
      { status: 'failed', error: 'Task timed out: it did not end within its limit of 500 ms.' },
      {
        status: 'failed',
        error: 'Task timed out: it did not end within its limit of 500 ms. It then reported: broken',
      },
      { status: 'cancelled' },
    ])
  })

  it('T4: it fails when its grace is over, with a message that names the limit', () => {
    const { actor, clock } = start({ timeoutMs: 3_000, graceMs: 100 })
    clock.advance(3_099)
    expect(actor.getSnapshot().status).toBe('active')
    clock.advance(1)
    expect(actor.getSnapshot().output).toEqual({
      status: 'failed',
      error: 'Task timed out: it did not end within its limit of 3 s.',
    })
  })

  it('waits for no deadline when it has none, and drops the one it has when it ends', () => {
    expect(start().clock.pending).toBe(0)
    const { actor, clock } = start({ timeoutMs: 500 })
    expect(clock.pending).toBe(1)
    actor.send({ type: 'task.cancel' })
    expect(clock.pending).toBe(0)
  })

  it('refuses to run into its deadline without the host’s effect', () => {
    const errors: unknown[] = []
    const clock = createManualClock()
    const timed = createActor(asyncTaskMachine, {
      clock: { setTimeout: (run, ms) => clock.setTimeout(run, ms), clearTimeout: (timer) => clock.clearTimeout(timer) },
      input: { id: 'a', subagentName: 's', graceMs: 0, timeoutMs: 1 },
    })
    timed.subscribe({ error: (error) => errors.push(error) })
    timed.start()
    clock.advance(1)
    expect(String(errors[0])).toContain('requestAbort')
  })
})
