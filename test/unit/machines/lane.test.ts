/** The lane's machine by itself: L1 to L4. */
import { describe, expect, it } from 'vitest'
import { createActor } from 'xstate'
import { laneMachine } from '../../../machines/lane.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

function start() {
  const clock = createManualClock()
  const queue: string[] = []
  const log: string[] = []
  let inFlight = 0
  const actor = createActor(
    laneMachine.provide({
      actions: {
        startCall: () => {
          inFlight += 1
          log.push(`start ${String(queue.shift())} (${inFlight} in flight)`)
        },
        abortCall: () => log.push('abort'),
        timeOutCall: () => log.push('time out'),
      },
    }),
    {
      clock: { setTimeout: (run, ms) => clock.setTimeout(run, ms), clearTimeout: (timer) => clock.clearTimeout(timer) },
      input: { instanceId: 'x', work: { hasNext: () => queue.length > 0, timeoutMs: () => 100 } },
    },
  )
  actor.start()
  const settle = (): void => {
    inFlight -= 1
    actor.send({ type: 'call.settled' })
  }
  const put = (...tasks: string[]): void => {
    queue.push(...tasks)
    actor.send({ type: 'lane.wake' })
  }
  return { actor, clock, log, put, settle }
}

describe('a lane', () => {
  it('L1, L2: runs one call at a time, in the order of submission', () => {
    const { log, put, settle, actor } = start()
    put('a', 'b')
    put('c')
    settle()
    settle()
    expect(log).toEqual(['start a (1 in flight)', 'start b (1 in flight)', 'start c (1 in flight)'])
    settle()
    expect(actor.getSnapshot().value).toBe('idle')
  })

  it('L3: after a call that was given up it waits until that has settled', () => {
    const { log, put, settle, actor } = start()
    put('a', 'b')
    actor.send({ type: 'call.abort' })
    put('c')
    expect(log).toEqual(['start a (1 in flight)', 'abort'])
    expect(actor.getSnapshot().value).toBe('releasing')
    settle()
    expect(log.at(-1)).toBe('start b (1 in flight)')
  })

  it('L4: gives up a call that exceeds the timeout of its command', () => {
    const { clock, log, put, settle, actor } = start()
    put('a')
    clock.advance(99)
    expect(log).toHaveLength(1)
    clock.advance(1)
    expect(log).toEqual(['start a (1 in flight)', 'time out', 'abort'])
    settle()
    expect(actor.getSnapshot().value).toBe('idle')
    put('b')
    settle()
    clock.advance(1_000)
    expect(log).toHaveLength(4)
    expect(clock.pending).toBe(0)
  })
})
