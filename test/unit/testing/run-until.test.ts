/** Waits without real time: when they end, and what their errors list. */
import { describe, expect, it, vi } from 'vitest'
import { createActor, emit, fromCallback, setup } from 'xstate'
import { AsyncTaskManager } from 'agent-tasks'
import { createManualClock, exploreRaces, runUntilEvent, runUntilSettled, runUntilState } from 'agent-tasks/testing'

const lamp = setup({
  types: { events: {} as { type: 'press' } | { type: 'look'; at: number }, emitted: {} as { type: 'dimmed' } },
}).createMachine({
  id: 'lamp',
  initial: 'off',
  states: {
    off: { on: { press: 'on' } },
    on: { after: { 1000: { target: 'dim', actions: emit({ type: 'dimmed' }) } } },
    dim: { after: { 60_000: 'burnt' } },
    burnt: { type: 'final' },
  },
})

function light() {
  const clock = createManualClock()
  const actor = createActor(lamp, { clock, id: 'lamp' }).start()
  return { clock, actor }
}

describe('runUntilState', () => {
  it('rejects when the actor has failed', async () => {
    const clock = createManualClock()
    const actor = createActor(
      fromCallback(({ receive }) => {
        receive(() => {
          throw new Error('broken')
        })
      }),
    ).start()
    clock.setTimeout(() => actor.send({ type: 'break' }), 5)
    await expect(runUntilState(actor, () => false, clock)).rejects.toThrow('it has stopped')
    expect(clock.now()).toBe(5)
  })

  it('requires a predicate for an actor that is no machine', async () => {
    const actor = createActor(fromCallback(() => undefined)).start()
    await expect(runUntilState(actor, 'on', createManualClock())).rejects.toThrow(
      'state: got "on", expected a predicate, because the actor is not a machine and has no state values.',
    )
  })

  it('moves the clock no further than the state', async () => {
    const { clock, actor } = light()
    actor.send({ type: 'press' })
    expect((await runUntilState(actor, 'dim', clock)).value).toBe('dim')
    expect(clock.now()).toBe(1000)
    await runUntilState(actor, ({ status }) => status === 'done', clock)
    expect(clock.now()).toBe(61_000)
  })

  it('lists the states it saw when no timer is left', async () => {
    const { clock, actor } = light()
    await expect(runUntilState(actor, 'dim', clock)).rejects.toThrow(
      'runUntilState: lamp was never in the state "dim": no timer is left to run. Seen states: off.',
    )
    actor.send({ type: 'press' })
    await expect(runUntilState(actor, 'burnt', clock, { timeoutMs: 5000 })).rejects.toThrow(
      '5000 ms have passed. Seen states: on, dim.',
    )
    await expect(runUntilState(actor, 'off', clock)).rejects.toThrow('it has stopped. Seen states: dim, burnt (done).')
    await expect(runUntilState(actor, 'off', clock, { timeoutMs: -1 })).rejects.toThrow('options.timeoutMs: got -1')
  })
})

describe('runUntilEvent', () => {
  it('takes an event that the actor receives or emits', async () => {
    const { clock, actor } = light()
    clock.setTimeout(() => actor.send({ type: 'look', at: 7 }), 50)
    expect((await runUntilEvent(actor, 'look', clock)).at).toBe(7)
    actor.send({ type: 'press' })
    expect(await runUntilEvent(actor, 'dimmed', clock)).toEqual({ type: 'dimmed' })
    expect(clock.now()).toBe(1050)
  })

  it('lists the events it saw when the event does not come', async () => {
    const { clock, actor } = light()
    clock.setTimeout(() => actor.send({ type: 'press' }), 50)
    await expect(runUntilEvent(actor, ({ type }) => type === 'look', clock)).rejects.toThrow(
      /runUntilEvent: lamp never got the awaited event: it has stopped\. Seen events: press, /,
    )
  })
})

describe('runUntilSettled', () => {
  it('runs a task to its deadline, and resolves as the promise does', async () => {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ clock })
    manager.launch({ id: 'a', subagentName: 'helper', goalPrompt: '', timeoutMs: 5000 }, async (_, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return {}
    })
    const { settled } = await runUntilSettled(manager.waitFor(['a']), clock)
    expect(settled.map(({ status }) => status)).toEqual(['failed'])
    expect(clock.now()).toBe(5000)
    await manager.dispose()
  })

  it('rejects as the promise does, or when no timer is left', async () => {
    const clock = createManualClock()
    await expect(runUntilSettled(Promise.reject(new Error('no')), clock)).rejects.toThrow('no')
    await expect(runUntilSettled(new Promise(() => undefined), clock)).rejects.toThrow('the promise never settled')
    const again = (): unknown => clock.setTimeout(again, 0)
    again()
    await expect(runUntilSettled(new Promise(() => undefined), clock)).rejects.toThrow('10000 timers ran')
  })

  it('does not move the clock of a race', async () => {
    const summary = await exploreRaces({
      setup: ({ clock }) => ({ clock, actor: createActor(lamp, { clock, id: 'lamp' }).start() }),
      actors: {
        presser: [({ actor }) => actor.send({ type: 'press' })],
        watcher: [
          async ({ actor, clock }) => (await runUntilState(actor, ({ value }) => value !== 'off', clock)).value,
        ],
      },
      mode: 'exhaustive',
    })
    // The watcher begins before the press, or after the press and none, one or two of the timers.
    expect(summary.orders).toBe(4)
  })
})

describe('a wait for a state', () => {
  const createActor = () => {
    let look: () => void = () => undefined
    const state = { value: 'begun' }
    const unsubscribe = vi.fn()
    const actor = {
      id: 'subject',
      getSnapshot: () => ({ status: 'active', value: state.value, matches: (value: string) => value === state.value }),
      subscribe: (observer: { next: () => void }) => {
        look = () => observer.next()
        return { unsubscribe }
      },
    }
    const become = (value: string): void => {
      state.value = value
      look()
    }
    return { actor: actor as never, become, unsubscribe }
  }

  it('takes also what the last timer within its time brings, and leaves no subscription', async () => {
    const { actor, become, unsubscribe } = createActor()
    const clock = createManualClock()
    clock.setTimeout(() => become('over'), 1000)
    expect(await runUntilState(actor, 'over', clock, { timeoutMs: 1000 })).toMatchObject({ value: 'over' })
    expect(unsubscribe).toHaveBeenCalledOnce()
  })

  it('runs no timer after its time, says what it has seen, and leaves no subscription', async () => {
    const { actor, become, unsubscribe } = createActor()
    const clock = createManualClock()
    clock.setTimeout(() => become('on the way'), 500)
    clock.setTimeout(() => become('over'), 1001)
    await expect(runUntilState(actor, 'over', clock, { timeoutMs: 1000 })).rejects.toThrow(
      'runUntilState: subject was never in the state "over": 1000 ms have passed. Seen states: begun, on the way.',
    )
    expect([clock.pending, unsubscribe.mock.calls.length]).toEqual([1, 1])
    clock.advance(1)
    clock.advance(1000)
  })
})
