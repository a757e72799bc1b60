/** Transitions of the delivery machine that no race takes, because they need an unusual host: D3 to D5. */
import { describe, expect, it } from 'vitest'

import { setUpTrigger } from '../unit/async-tasks/trigger-host.js'
import type { ReminderSource } from '../../src/features/delivery/auto-trigger.js'

/** A source that never has a reminder. */
const remindsOfNothing = (meanwhile: () => void = () => undefined): ReminderSource => ({
  leaseReminder: () => {
    meanwhile()
    return undefined
  },
})

describe('a delivery without a reminder', () => {
  it('D4: is a failure while something is owed, and is retried after the back-off', async () => {
    let asked = 0
    const { clock, complete, createTrigger, deliveryOf, turns } = setUpTrigger({
      reminders: () => remindsOfNothing(() => (asked += 1)),
    })
    complete('a')
    createTrigger().subscribe()
    await clock.advance(0)
    expect(asked).toBe(1)
    await clock.advance(999)
    expect(asked).toBe(1)
    await clock.advance(1)
    expect(asked).toBe(2)
    await clock.advance(1_999)
    expect(asked).toBe(2)
    await clock.advance(1)
    expect(asked).toBe(3)
    expect(turns).toHaveLength(0)
    expect(deliveryOf('a')).toBe('owed')
  })

  it('D5: stops a trigger that was unsubscribed meanwhile', async () => {
    let asked = 0
    let unsubscribe: () => void = () => undefined
    const host = setUpTrigger({
      reminders: () =>
        remindsOfNothing(() => {
          asked += 1
          unsubscribe()
        }),
    })
    host.complete('a')
    unsubscribe = host.createTrigger().subscribe()
    await host.clock.advance(60_000)
    expect(asked).toBe(1)
    expect(host.deliveryOf('a')).toBe('owed')
    expect(host.clock.pending).toBe(0)
  })

  it('D5: is not retried after an unsubscribe during the back-off', async () => {
    let asked = 0
    const { clock, complete, createTrigger, deliveryOf } = setUpTrigger({
      reminders: () => remindsOfNothing(() => (asked += 1)),
    })
    complete('a')
    const unsubscribe = createTrigger().subscribe()
    await clock.advance(0)
    expect(clock.pending).toBe(1)
    unsubscribe()
    expect(clock.pending).toBe(0)
    await clock.advance(60_000)
    expect(asked).toBe(1)
    expect(deliveryOf('a')).toBe('owed')
  })
})

describe('a delivery that takes too long', () => {
  it('A5, D5: expires after unsubscribe as well, and nothing follows', async () => {
    const { clock, complete, createTrigger, deliveryOf, onError, turns } = setUpTrigger({ deliveryTimeoutMs: 500 })
    complete('a')
    const unsubscribe = createTrigger().subscribe()
    await clock.advance(0)
    unsubscribe()
    await clock.advance(499)
    expect(deliveryOf('a')).toBe('leased')
    await clock.advance(1)
    expect(turns[0]?.signal.aborted).toBe(true)
    expect(deliveryOf('a')).toBe('owed')
    await clock.advance(60_000)
    expect(turns).toHaveLength(1)
    // A9: no callback after unsubscribe.
    expect(onError).not.toHaveBeenCalled()
    expect(clock.pending).toBe(0)
  })
})
