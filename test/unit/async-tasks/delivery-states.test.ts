/** How the deliveries of an owner stand, and what is left of them when nothing delivers to it any more. */
import { expect, it, onTestFinished } from 'vitest'
import type { AutoTriggerOptions } from '../../../src/features/delivery/auto-trigger.js'
import { deliveryStates } from '../../../src/features/delivery/delivery-states.js'
import { setUpTrigger } from './trigger-host.js'

function setUp(options: AutoTriggerOptions = {}) {
  let isBusy = false
  const host = setUpTrigger({ isAgentBusy: () => isBusy, ...options })
  const states = host.manager.registry.use(deliveryStates)
  const changes: string[] = []
  const follow = (): void => {
    const subscription = states.changed$.subscribe((owner) => {
      const all = states.of(owner).map(({ path, until, failures }) => `${path} ${until ?? '-'} ${failures}`)
      changes.push(`${owner}: ${all.join(', ')}`)
    })
    onTestFinished(() => subscription.unsubscribe())
  }
  return { ...host, states, changes, follow, setBusy: (busy: boolean) => (isBusy = busy) }
}

it('are shown with the states of the trigger, their ends and the failures in a row, each once', async () => {
  const { clock, turns, createTrigger, complete, states, changes, follow, setBusy } = setUp({
    deliveryTimeoutMs: 60_000,
  })
  follow()
  const unsubscribe = createTrigger().subscribe()
  expect([...states.owners()]).toEqual(['main'])
  setBusy(true)
  complete('a')
  // It is asked three times whether the agent is busy.
  await clock.advance(3000)
  expect(changes).toEqual(['main: holding.gathering.quiet - 0', 'main: holding.polling - 0'])
  setBusy(false)
  await clock.advance(1000)
  expect(changes.splice(0).at(-1)).toBe('main: delivering.attended 65000 0')
  turns[0]?.refuse(new Error('no'))
  await clock.advance(500)
  expect(changes).toEqual(['main: backingOff 6000 1'])
  await clock.advance(500)
  turns[1]?.refuse(new Error('no'))
  await clock.advance(0)
  expect(changes.splice(0).at(-1)).toBe('main: backingOff 8000 2')
  await clock.advance(2000)
  turns[2]?.accept()
  await clock.advance(0)
  expect(changes.splice(0).at(-1)).toBe('main: dormant - 0')
  unsubscribe()
  expect([changes.at(-1), [...states.owners()], states.of('main')]).toEqual(['main: ', [], []])
})

it('wait no longer than the longest back-off, and have no end without a time limit', async () => {
  const { clock, turns, createTrigger, complete, states } = setUp({ retry: { initialMs: 400, maxMs: 1000 } })
  onTestFinished(createTrigger().subscribe())
  complete('a')
  const waits: (number | undefined)[] = []
  for (let round = 0; round < 4; round += 1) {
    await clock.advance(round === 0 ? 0 : 1000)
    expect(states.of('main')).toEqual([{ path: 'delivering.attended', until: undefined, failures: round }])
    turns[round]?.refuse()
    await clock.advance(0)
    waits.push((states.of('main')[0]?.until ?? NaN) - clock.now())
  }
  expect(waits).toEqual([400, 800, 1000, 1000])
})

it('are those of each trigger of an owner, until its last one ends', async () => {
  const { clock, turns, createTrigger, complete, states, follow, changes } = setUp()
  const ends = [createTrigger().subscribe(), createTrigger().subscribe(), createTrigger({ owner: 'other' }).subscribe()]
  complete('a')
  await clock.advance(0)
  // Nobody looked at them until now.
  follow()
  expect([...states.owners()].sort()).toEqual(['main', 'other'])
  expect(states.of('main').map(({ path }) => path)).toContain('delivering.attended')
  expect(states.of('nobody')).toEqual([])
  ends[2]?.()
  expect([...states.owners()]).toEqual(['main'])
  expect(changes.at(-1)).toBe('other: ')
  // The message that is in flight keeps its place.
  for (const end of ends) end()
  expect([...states.owners()]).toEqual(['main'])
  turns[0]?.accept()
  await clock.advance(0)
  expect([[...states.owners()], clock.pending]).toEqual([[], 0])
})

it('end with their manager', async () => {
  const { manager, states } = setUp()
  let isEnded = false
  states.changed$.subscribe({ complete: () => (isEnded = true) })
  await manager.dispose()
  expect(isEnded).toBe(true)
})
