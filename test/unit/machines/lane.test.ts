/** The lane's machine by itself: L1 to L4. */
import { describe, expect, it } from 'vitest'
import { createActor } from 'xstate'
import { laneMachine, type LaneHost } from '../../../machines/lane.js'

function start() {
  const queue: string[] = []
  const log: string[] = []
  let inFlight = 0
  const host: LaneHost = {
    hasNext: () => queue.length > 0,
    startCall: () => {
      inFlight += 1
      log.push(`start ${String(queue.shift())} (${inFlight} in flight)`)
    },
    abortCall: () => log.push('abort'),
    timeOutCall: () => log.push('time out'),
  }
  const actor = createActor(laneMachine, { input: { instanceId: 'x', host } })
  actor.start()
  const settle = (): void => {
    inFlight -= 1
    actor.send({ type: 'call.settled' })
  }
  const put = (...tasks: string[]): void => {
    queue.push(...tasks)
    actor.send({ type: 'lane.wake' })
  }
  return { actor, log, put, settle }
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

  it('L3: after a call that was given up, waits until that call has settled', () => {
    const { log, put, settle, actor } = start()
    put('a', 'b')
    actor.send({ type: 'call.abort' })
    put('c')
    expect(log).toEqual(['start a (1 in flight)', 'abort'])
    expect(actor.getSnapshot().value).toBe('releasing')
    settle()
    expect(log.at(-1)).toBe('start b (1 in flight)')
  })

  it('L4: gives up a call that exceeds its time limit', () => {
    const { log, put, settle, actor } = start()
    put('a')
    actor.send({ type: 'call.timedOut' })
    expect(log).toEqual(['start a (1 in flight)', 'time out', 'abort'])
    expect(actor.getSnapshot().value).toBe('releasing')
    actor.send({ type: 'call.timedOut' })
    actor.send({ type: 'call.abort' })
    settle()
    expect(actor.getSnapshot().value).toBe('idle')
    actor.send({ type: 'call.timedOut' })
    put('b')
    settle()
    expect(log).toEqual(['start a (1 in flight)', 'time out', 'abort', 'start b (1 in flight)'])
  })
})
