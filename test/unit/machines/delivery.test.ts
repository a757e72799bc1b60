/** The delivery machine by itself: D1 to D5. The test is its host. */
import { describe, expect, it, vi } from 'vitest'
import { createActor } from 'xstate'
import { deliveryMachine, type DeliveryReport, type DeliveryTiming } from '../../../machines/delivery.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

const TIMING: DeliveryTiming = { coalesceMs: 0, maxWaitMs: 5_000, retryInitialMs: 1_000, retryMaxMs: 4_000 }

function start(timing: Partial<DeliveryTiming> = {}) {
  const clock = createManualClock()
  const host = { isNothingOwed: false, isIdle: true, inFlight: 0, mostInFlight: 0, deliveries: 0, abandoned: 0 }
  let report: (event: DeliveryReport) => void = () => undefined
  const reportExpiry = vi.fn()
  const actor = createActor(deliveryMachine, {
    clock: { setTimeout: (run, ms) => clock.setTimeout(run, ms), clearTimeout: (timer) => clock.clearTimeout(timer) },
    input: {
      timing: { ...TIMING, ...timing },
      host: {
        isNothingOwed: () => host.isNothingOwed,
        isAgentIdle: () => host.isIdle,
        reportExpiry,
        deliver: (reportOutcome) => {
          host.deliveries += 1
          host.inFlight += 1
          host.mostInFlight = Math.max(host.mostInFlight, host.inFlight)
          let isOver = false
          report = (outcome) => {
            isOver = true
            host.inFlight -= 1
            reportOutcome(outcome)
          }
          return () => {
            if (isOver) return
            host.abandoned += 1
            host.inFlight -= 1
          }
        },
      },
    },
  })
  actor.start()
  return { actor, clock, host, reportExpiry, report: (type: DeliveryReport['type']) => report({ type }) }
}

describe('deliveries', () => {
  it('D1: one is in flight at most, whatever happens meanwhile', () => {
    const { actor, clock, host, report } = start()
    clock.advance(0)
    for (const type of ['delivery.requested', 'agent.idle', 'lease.ended'] as const) actor.send({ type })
    clock.advance(10_000)
    expect(host).toMatchObject({ deliveries: 1, mostInFlight: 1 })
    report('delivery.accepted')
    clock.advance(0)
    expect(host).toMatchObject({ deliveries: 2, mostInFlight: 1 })
  })

  it('D2: sleeps only when nothing is owed, and a request wakes it', () => {
    const { actor, clock, host } = start()
    host.isNothingOwed = true
    clock.advance(0)
    expect(actor.getSnapshot().value).toBe('dormant')
    expect(clock.pending).toBe(0)
    host.isNothingOwed = false
    actor.send({ type: 'delivery.requested' })
    clock.advance(0)
    expect(host.deliveries).toBe(1)
  })

  it('D2: polls a busy agent if it must, and otherwise waits for it to become idle', () => {
    const polled = start({ pollMs: 250 })
    polled.host.isIdle = false
    polled.clock.advance(1_000)
    expect(polled.actor.getSnapshot().value).toEqual({ holding: 'polling' })
    polled.host.isIdle = true
    polled.clock.advance(250)
    expect(polled.host.deliveries).toBe(1)

    const pushed = start()
    pushed.host.isIdle = false
    pushed.clock.advance(60_000)
    expect(pushed.actor.getSnapshot().value).toEqual({ holding: 'waiting' })
    expect(pushed.clock.pending).toBe(0)
    pushed.host.isIdle = true
    pushed.actor.send({ type: 'agent.idle' })
    pushed.clock.advance(0)
    expect(pushed.host.deliveries).toBe(1)
  })

  it('D2: asks a polled agent again when something else becomes owed', () => {
    const { actor, clock, host } = start({ pollMs: 250 })
    host.isIdle = false
    clock.advance(10)
    host.isIdle = true
    actor.send({ type: 'delivery.requested' })
    clock.advance(0)
    expect(host.deliveries).toBe(1)
  })

  it('D2: delivers at once when a polled agent answers late that it is idle', () => {
    const { actor, clock, host } = start({ pollMs: 250 })
    host.isIdle = false
    clock.advance(10)
    host.isIdle = true
    actor.send({ type: 'agent.answered' })
    expect(host.deliveries).toBe(1)
  })

  it('D3: looks again after every end of a delivery', () => {
    for (const end of ['delivery.accepted', 'delivery.emptied', 'delivery.refused'] as const) {
      const { clock, host, report } = start()
      clock.advance(0)
      report(end)
      clock.advance(1_000)
      expect(host.deliveries, end).toBe(2)
    }
  })

  it('D3: an expired delivery is given up and reported, and it looks again', () => {
    const { clock, host, reportExpiry } = start({ timeoutMs: 30 })
    clock.advance(30)
    expect(host).toMatchObject({ deliveries: 1, abandoned: 1 })
    expect(reportExpiry).toHaveBeenCalledOnce()
    clock.advance(1_000)
    expect(host).toMatchObject({ deliveries: 2, mostInFlight: 1 })
  })

  it('D3: a suspended delivery does not expire, and has the whole time again when it is resumed', () => {
    const { actor, clock, host } = start({ timeoutMs: 30 })
    clock.advance(20)
    actor.send({ type: 'delivery.suspended' })
    clock.advance(3_600_000)
    expect(host).toMatchObject({ deliveries: 1, abandoned: 0 })
    actor.send({ type: 'delivery.resumed' })
    clock.advance(29)
    expect(host.abandoned).toBe(0)
    clock.advance(1)
    expect(host.abandoned).toBe(1)
  })

  it('D4: refused deliveries back off exponentially up to the maximum; a success starts over', () => {
    const { clock, host, report } = start()
    const waits: number[] = []
    clock.advance(0)
    for (let i = 0; i < 5; i += 1) {
      report('delivery.refused')
      const before = host.deliveries
      let waited = 0
      while (host.deliveries === before) {
        clock.advance(100)
        waited += 100
      }
      waits.push(waited)
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 4_000, 4_000])
    report('delivery.accepted')
    clock.advance(0)
    report('delivery.refused')
    clock.advance(1_000)
    expect(host.deliveries).toBe(8)
  })

  it('D4: an idle edge fires an armed retry, a new settlement joins it', () => {
    const { actor, clock, host, report } = start()
    clock.advance(0)
    report('delivery.refused')
    actor.send({ type: 'delivery.requested' })
    clock.advance(999)
    expect(host.deliveries).toBe(1)
    actor.send({ type: 'agent.idle' })
    clock.advance(0)
    expect(host.deliveries).toBe(2)
  })

  it('D5: detached, nothing new starts, and a delivery in flight still ends', () => {
    const { actor, clock, host, report } = start({ timeoutMs: 100 })
    clock.advance(0)
    actor.send({ type: 'trigger.detach' })
    clock.advance(50)
    expect(host).toMatchObject({ deliveries: 1, inFlight: 1, abandoned: 0 })
    report('delivery.refused')
    clock.advance(60_000)
    expect(host.deliveries).toBe(1)
    expect(actor.getSnapshot()).toMatchObject({ value: 'detached', status: 'done' })
    expect(clock.pending).toBe(0)
  })

  it('D5: attached again during a delivery, it continues as before', () => {
    const { actor, clock, host, report } = start()
    clock.advance(0)
    actor.send({ type: 'trigger.detach' })
    actor.send({ type: 'trigger.attach' })
    report('delivery.accepted')
    clock.advance(0)
    expect(host.deliveries).toBe(2)
  })

  it('coalesces ends, up to the maximum wait', () => {
    const { actor, clock, host } = start({ coalesceMs: 100, maxWaitMs: 250 })
    for (let i = 0; i < 3; i += 1) {
      clock.advance(80)
      expect(host.deliveries).toBe(0)
      actor.send({ type: 'delivery.requested' })
    }
    clock.advance(10)
    expect(host.deliveries).toBe(1)
  })
})
