// When code of the host is called: after a change, isolated, and in which order.
import { describe, expect, it } from 'vitest'
import { createActor, setup } from 'xstate'
import { createManualClock } from 'agent-tasks/testing'
import { observeClock } from '../../../src/isolation/observed-clock.js'
import { ManagerOutbox, reporterOf, type ManagerOutboxOptions } from '../../../src/isolation/manager-outbox.js'

interface Item {
  readonly type: 'item'
  readonly name: string
}

function createManagerOutbox(options: Partial<ManagerOutboxOptions<Item>> = {}) {
  const log: string[] = []
  const clock = createManualClock()
  const outbox = new ManagerOutbox<Item>({
    clock,
    report: (error, { source }) => log.push(`${source}: ${String(error)}`),
    inspect: undefined,
    notify: ({ name }) => log.push(name),
    ...options,
  })
  const push = (name: string): void => outbox.push({ type: 'item', name })
  return { outbox, push, log, clock }
}

describe('the outbox of a manager', () => {
  it('A2: calls the host after the change, in the order of what is notified, and reports what that throws', () => {
    const { outbox, push, log } = createManagerOutbox()
    outbox.batch(() => {
      push('a')
      outbox.callLater(() => log.push('call'), 'runner')
      outbox.callAfterWrite(() => log.push('abort'), 'runner')
      outbox.callLater(() => {
        throw new Error('no')
      }, 'handler')
      push('b')
      log.push('changed')
    })
    expect(log).toEqual(['changed', 'a', 'call', 'abort', 'handler: Error: no', 'b'])
  })

  it('calls what follows an attempt to store a change when that was made, while the rest is held back', () => {
    let mayDeliver = false
    const attempts: (() => void)[] = []
    const { outbox, push, log } = createManagerOutbox({
      mayDeliver: () => mayDeliver,
      afterWrite: (run) => attempts.push(run),
    })
    outbox.batch(() => {
      push('a')
      outbox.callAfterWrite(() => log.push('abort'), 'runner')
      outbox.callAfterWrite(() => {
        throw new Error('no')
      }, 'runner')
      log.push('changed')
    })
    expect(log).toEqual(['changed'])
    for (const run of attempts) run()
    expect(log).toEqual(['changed', 'abort', 'runner: Error: no'])
    mayDeliver = true
    outbox.drain()
    expect(log.slice(3)).toEqual(['a'])
  })

  it('ends delays of actors inside a change, and delivers inspection events after it', () => {
    const seen: string[] = []
    const isIdle = (): boolean => depth === 0
    let depth = 0
    const { outbox, clock, log } = createManagerOutbox({
      inspect: ({ type }) => {
        seen.push(type)
        if (!isIdle()) log.push('inside')
        throw new Error('inspector')
      },
    })
    const machine = setup({
      delays: { soon: 100 },
      actions: {
        change: () => {
          depth += 1
          outbox.callLater(() => log.push('after'), 'runner')
          log.push('change')
          depth -= 1
        },
      },
    }).createMachine({ after: { soon: { actions: 'change' } } })
    const actor = createActor(machine, outbox.actorOptions())
    outbox.batch(() => actor.start())
    expect(seen).toContain('@xstate.actor')
    log.length = 0
    clock.advance(100)
    expect(log.slice(0, 1)).toEqual(['change'])
    expect(log).toContain('after')
    expect(log).toContain('inspector: Error: inspector')
    expect(log).not.toContain('inside')
    actor.stop()
    expect(clock.pending).toBe(0)
  })

  it('gives actors no inspector that nobody has asked for', () => {
    const { outbox } = createManagerOutbox()
    expect(outbox.actorOptions()).not.toHaveProperty('inspect')
  })

  it('names the timers of actors for an observed clock, with or without an inspector', () => {
    const names: unknown[] = []
    const noted: string[] = []
    const labels = {
      take: (ms: number) => ({ name: `for ${ms}` }),
      note: ({ type }: { type: string }) => noted.push(type),
    }
    const clock = createManualClock()
    const named = {
      ...clock,
      setTimeout: (run: () => void, ms: number, label?: unknown) => (names.push(label), clock.setTimeout(run, ms)),
    }
    const { outbox } = createManagerOutbox({ clock: named })
    const options = outbox.actorOptions(labels)
    options.clock.setTimeout(() => undefined, 5)
    options.inspect?.({ type: '@xstate.event' } as never)
    expect([names, noted]).toEqual([[{ name: 'for 5' }], ['@xstate.event']])
  })
})

describe('reports', () => {
  it('go to the host, or else to the observer of its clock; what these throw is ignored', () => {
    const got: string[] = []
    const clock = createManualClock()
    observeClock(clock, (error) => got.push(`observer ${String(error)}`))
    reporterOf(undefined, clock)('a', { source: 'store' })
    reporterOf((error) => {
      got.push(`host ${String(error)}`)
      throw new Error('no')
    }, clock)('b', { source: 'store' })
    expect(got).toEqual(['observer a', 'host b'])
  })
})
