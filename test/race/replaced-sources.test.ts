/** Ways to a delivery with old durations, which races find only by chance (A6; D2 of the machine). */
import { BehaviorSubject } from 'rxjs'
import { expect, it } from 'vitest'
import { setUpTrigger } from '../unit/async-tasks/trigger-host.js'

it.each(['while it is subscribed', 'while it is not subscribed'])(
  'A6, D2: a busy function that replaces an Observable %s, during a delivery, is polled after it',
  async (when) => {
    const { clock, complete, createTrigger, startTurn, turns, deliveryOf } = setUpTrigger({
      isAgentBusy: new BehaviorSubject(false),
    })
    const trigger = createTrigger()
    const unsubscribe = trigger.subscribe()
    complete('a')
    await clock.advance(0)
    complete('b')
    let isBusy = true
    if (when === 'while it is not subscribed') unsubscribe()
    trigger.updateCallbacks(() => isBusy, startTurn)
    if (when === 'while it is not subscribed') trigger.subscribe()
    turns[0]!.accept()
    await clock.advance(0)
    isBusy = false
    await clock.advance(1000)
    expect(turns).toHaveLength(2)
    turns[1]!.accept()
    await clock.advance(0)
    expect(deliveryOf('b')).toBe('delivered')
  },
)
