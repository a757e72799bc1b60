/** The instance's machine by itself: I1 to I4. */
import { describe, expect, it, vi } from 'vitest'
import { createActor, transition } from 'xstate'
import { instanceMachine, type InstanceTiming } from '../../../machines/instance.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

function start(timing: InstanceTiming = {}) {
  const clock = createManualClock()
  const failCalls = vi.fn()
  const actor = createActor(instanceMachine, {
    clock: { setTimeout: (run, ms) => clock.setTimeout(run, ms), clearTimeout: (timer) => clock.clearTimeout(timer) },
    input: { timing, host: { failCalls } },
  })
  actor.start()
  return { actor, clock, failCalls }
}

describe('an instance', () => {
  it('I1: ends once, and never connects again', () => {
    const { actor, failCalls } = start()
    actor.send({ type: 'connection.opened' })
    actor.send({ type: 'connection.lost' })
    expect(failCalls).toHaveBeenCalledOnce()
    const ended = actor.getSnapshot()
    expect(ended).toMatchObject({ value: 'disconnected', status: 'done' })
    const [next] = transition(instanceMachine, ended, { type: 'connection.opened' })
    expect(next.value).toBe('disconnected')
  })

  it('I2: a registration that never connects expires', () => {
    const { actor, clock } = start({ connectTimeoutMs: 100 })
    clock.advance(99)
    expect(actor.getSnapshot().status).toBe('active')
    clock.advance(1)
    expect(actor.getSnapshot().value).toBe('disconnected')
    const patient = start()
    patient.clock.advance(1_000_000)
    expect(patient.actor.getSnapshot().status).toBe('active')
  })

  it('I3: a connection without a sign of life for too long is lost', () => {
    const { actor, clock } = start({ connectTimeoutMs: 10, livenessMs: 45 })
    actor.send({ type: 'connection.opened' })
    for (let i = 0; i < 5; i += 1) {
      clock.advance(44)
      actor.send({ type: 'connection.alive' })
    }
    expect(actor.getSnapshot().status).toBe('active')
    clock.advance(45)
    expect(actor.getSnapshot().value).toBe('disconnected')
    expect(clock.pending).toBe(0)
  })

  it('I4: a take-over fails the calls of the old socket, and the instance stays connected', () => {
    const { actor, clock, failCalls } = start({ livenessMs: 45 })
    actor.send({ type: 'connection.opened' })
    clock.advance(40)
    actor.send({ type: 'connection.takenOver' })
    expect(failCalls).toHaveBeenCalledOnce()
    expect(actor.getSnapshot().status).toBe('active')
    clock.advance(44)
    expect(actor.getSnapshot().status).toBe('active')
  })
})
