/** Charts that are run directly do what XState does with them, and keep nothing for each event that they are sent. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { assign, createActor, createMachine, type AnyMachineSnapshot, type AnyStateMachine } from 'xstate'
import { commandTaskMachine } from '../../machines/command-task.js'
import { runDirectly } from '../../src/engine/direct-chart.js'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { createManualClock } from '../../src/testing/manual-clock.js'
import { checkProperty } from '../support/property.js'
import { buildChart, EVENTS, randomChart } from './random-chart.js'

const viewOf = ({ value, context, status, output, tags }: AnyMachineSnapshot): unknown =>
  structuredClone<unknown>({
    value: value as unknown,
    context: context as unknown,
    status,
    output: output as unknown,
    tags: [...tags],
  })

/** Sends the events, with time between them, and keeps what can be seen. */
function play(machine: AnyStateMachine, n: number, events: readonly string[]): unknown[] {
  const clock = createManualClock()
  const actor = createActor(machine, {
    input: { n },
    clock: { setTimeout: (run, ms) => clock.setTimeout(run, ms), clearTimeout: (timer) => clock.clearTimeout(timer) },
  })
  actor.start()
  const seen = [viewOf(actor.getSnapshot() as AnyMachineSnapshot)]
  for (const type of events) {
    if (type === 'wait') clock.advance(600)
    else if (actor.getSnapshot().status === 'active') actor.send({ type })
    seen.push(viewOf(actor.getSnapshot() as AnyMachineSnapshot))
  }
  actor.stop()
  return seen
}

describe('a chart that is run directly', () => {
  it('is in the states, has the context and does what XState has it do, whatever the chart', async () => {
    const events = fc.array(fc.constantFrom(...EVENTS, 'wait', 'nothing'), { maxLength: 12 })
    const property = fc.property(randomChart, fc.nat(4), events, (chart, n, sent) => {
      const log: string[] = []
      const directLog: string[] = []
      const seen = play(buildChart(chart, log), n, sent)
      assert.deepStrictEqual(play(runDirectly(buildChart(chart, directLog), true), n, sent), seen)
      assert.deepStrictEqual(directLog, log)
    })
    await checkProperty('direct charts', property, { numRuns: 1000 })
  })

  it('runs a command task as XState does', async () => {
    const error = { code: 'A_CODE', message: 'it broke' }
    const event = fc.constantFrom(
      { type: 'task.start' as const },
      { type: 'task.cancel' as const, error },
      { type: 'command.succeeded' as const },
      { type: 'command.succeeded' as const },
      { type: 'command.failed' as const, error },
      { type: 'instance.lost' as const, error },
    )
    const property = fc.property(fc.integer({ min: 1, max: 3 }), fc.array(event), (totalCommands, events) => {
      const [plain, direct] = [commandTaskMachine, runDirectly(commandTaskMachine, true)].map((machine) => {
        const actor = createActor(machine, { input: { totalCommands } }).start()
        return events.map((one) => {
          if (actor.getSnapshot().status === 'active') actor.send(one)
          return viewOf(actor.getSnapshot())
        })
      })
      assert.deepStrictEqual(direct, plain)
    })
    await checkProperty('direct command tasks', property)
  })

  it('tells of the same transitions as a registry that is inspected, which XState runs', async () => {
    const id = fc.constantFrom('a', 'b', 'c')
    const step = fc.oneof(
      fc.record({ do: fc.constantFrom('register', 'launch', 'complete', 'fail', 'cancel', 'notify'), id }),
      fc.record({ do: fc.constantFrom('lease', 'acknowledge', 'release', 'reserve', 'wait'), id }),
      fc.record({ do: fc.constant('limit'), id, max: fc.integer({ min: 0, max: 3 }) }),
    )
    const property = fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const [direct, inspected] = [undefined, () => undefined].map((inspect) => {
        const clock = createManualClock()
        let ids = 0
        const manager = new AsyncTaskManager({
          maxAsyncTasks: 1,
          clock,
          createId: (prefix) => `${prefix}-${(ids += 1)}`,
          onError: () => undefined,
          ...(inspect !== undefined && { inspect }),
        })
        const seen: unknown[] = []
        manager.transitions$.subscribe(({ record: { abortController: _, ...record }, ...transition }) =>
          seen.push({ ...transition, record }),
        )
        const leases: { acknowledge: () => void; release: () => void }[] = []
        const input = (task: string) => ({ id: task, subagentName: 'agent', goalPrompt: '', timeoutMs: 1000 })
        for (const given of steps) {
          try {
            seen.push(act(manager, given))
          } catch (error) {
            seen.push((error as Error).message)
          }
          seen.push(manager.actor.getSnapshot().value)
        }
        function act(of: AsyncTaskManager, given: (typeof steps)[number]): unknown {
          switch (given.do) {
            case 'register':
              return of.registerTask(input(given.id)).seq
            case 'launch':
              return of.launch({ ...input(given.id) }, () => ({})).seq
            case 'complete':
              return of.completeTask(given.id, {})
            case 'fail':
              return of.failTask(given.id, 'it broke')
            case 'cancel':
              return of.cancelTask(given.id)
            case 'notify': {
              of.markNotified(given.id)
              return
            }
            case 'lease': {
              const lease = of.lease()
              if (lease !== undefined) leases.push(lease)
              return lease?.tasks.map((task) => task.id)
            }
            case 'acknowledge':
              return leases.pop()?.acknowledge()
            case 'release':
              return leases.pop()?.release()
            case 'reserve':
              return of.tryReserveAsyncSlot()
            case 'limit': {
              of.setMaxAsyncTasks('max' in given ? given.max : 0)
              return
            }
            default: {
              clock.advance(700)
              return
            }
          }
        }
        void manager.dispose()
        return seen
      })
      assert.deepStrictEqual(direct, inspected)
    })
    await checkProperty('direct registry', property)
  })
})

describe('a guard that reads what changes by itself', () => {
  it('is looked at again at the next event, even one that the chart does not take', () => {
    const box = { isOpen: false }
    const chart = createMachine({
      initial: 'shut',
      on: { knock: { guard: () => false, target: '.shut' } },
      states: { shut: { always: { guard: () => box.isOpen, target: 'open' } }, open: {} },
    } as never) as AnyStateMachine
    const actor = createActor(runDirectly(chart, true)).start()
    actor.send({ type: 'knock' })
    expect((actor.getSnapshot() as AnyMachineSnapshot).value).toBe('shut')
    box.isOpen = true
    actor.send({ type: 'knock' })
    expect((actor.getSnapshot() as AnyMachineSnapshot).value).toBe('open')
  })
})

describe('an event that a chart does not name', () => {
  it('is taken by a chart that takes everything, and by no other', () => {
    const makeChart = (descriptor: string): AnyStateMachine =>
      createMachine({ initial: 'a', on: { [descriptor]: { target: '.b' } }, states: { a: {}, b: {} } })
    for (const [descriptor, state] of [
      ['*', 'b'],
      ['other', 'a'],
    ] as const) {
      const actor = createActor(runDirectly(makeChart(descriptor), true)).start()
      actor.send({ type: 'anything' })
      expect((actor.getSnapshot() as AnyMachineSnapshot).value).toBe(state)
    }
  })
})

describe('an event whose type has an id in it', () => {
  it('arrives as the wildcard that covers it, so that the chart keeps nothing for each id', () => {
    const types: string[] = []
    const chart = createMachine(
      { on: { 'done.*': { actions: 'note' } } },
      { actions: { note: ({ event }) => types.push((event as { type: string }).type) } },
    )
    for (const isDirect of [true, false]) {
      const actor = createActor(runDirectly(chart, isDirect)).start()
      actor.send({ type: 'done.1' })
      actor.send({ type: 'done.2' })
    }
    expect(types).toEqual(['done.*', 'done.*', 'done.*', 'done.*'])
  })
})

describe('a chart that cannot be run', () => {
  const start = (chart: AnyStateMachine) => {
    const errors: unknown[] = []
    const actor = createActor(runDirectly(chart, true))
    actor.subscribe({ error: (error) => errors.push(error) })
    actor.start()
    return { actor, errors }
  }

  it('because it turns in circles without an event says so, and ends', () => {
    const { actor, errors } = start(
      createMachine({
        id: 'spinner',
        initial: 'still',
        states: {
          still: { on: { spin: 'left' } },
          left: { always: { target: 'right' } },
          right: { always: { target: 'left' } },
        },
      }),
    )
    actor.send({ type: 'spin' })
    expect(String(errors[0])).toBe('Error: chart spinner turns in circles without an event')
    expect(actor.getSnapshot().status).toBe('error')
  })

  it('with a context that makes an actor is run as XState runs it', () => {
    const { actor, errors } = start(
      createMachine({
        context: ({ spawn }: { spawn: (logic: AnyStateMachine, options: object) => unknown }) => ({
          child: spawn(createMachine({}) as AnyStateMachine, { id: 'child' }),
        }),
        initial: 'a',
        states: { a: { on: { go: 'b' } }, b: {} },
      } as never) as AnyStateMachine,
    )
    actor.send({ type: 'go' })
    const snapshot = actor.getSnapshot() as AnyMachineSnapshot
    expect(errors).toEqual([])
    expect(snapshot).toMatchObject({ value: 'b', children: { child: { id: 'child' } } })
  })

  it('because an assignment makes an actor is told to make it otherwise', () => {
    const { actor, errors } = start(
      createMachine({
        initial: 'a',
        context: {},
        states: {
          a: { on: { go: { target: 'b', actions: assign(({ spawn }) => ({ child: spawn(createMachine({})) })) } } },
          b: {},
        },
      } as never) as AnyStateMachine,
    )
    actor.send({ type: 'go' })
    expect(errors).toEqual([new Error('a chart that is run directly must not spawn: make children with createActor')])
  })
})
