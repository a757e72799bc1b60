/** Our messages compared with those of `@statelyai/inspect` for the same actors. */
import { createInspector as createStatelyInspector, type StatelyInspectionEvent } from '@statelyai/inspect'
import { expect, expectTypeOf, it } from 'vitest'
import {
  assign,
  createActor,
  fromCallback,
  fromPromise,
  setup,
  type AnyStateMachine,
  type InspectionEvent,
} from 'xstate'
import { asyncTaskMachine, commandTaskMachine, instanceMachine, laneMachine } from '../../../../machines/index.js'

import { systemClock } from '../../../../src/system/clock.js'
import { startRelay } from '../../../support/inspector-relay.js'
import { flushTo, inspectorFor } from './inspected.js'
import type {
  ActorMessage,
  EventMessage,
  InspectionMessage,
  SnapshotMessage,
} from '../../../../src/observability/inspect/messages.js'

/** A machine with children of other kinds, values that JSON cannot represent, and deep and circular data. */
const oddMachine = setup({
  actors: {
    listen: fromCallback(({ sendBack }) => sendBack({ type: 'heard' })),
    wait: fromPromise(() => Promise.resolve({ answer: 42 })),
  },
}).createMachine({
  id: 'odd',
  context: () => {
    const circle: Record<string, unknown> = { name: 'circle' }
    circle['self'] = circle
    let deep: unknown = 'bottom'
    for (let depth = 0; depth < 15; depth += 1) deep = { deep }
    return {
      circle,
      deep,
      list: [1, null, undefined, 'x'],
      call: function named() {},
      date: new Date(0),
      none: undefined,
    }
  },
  invoke: [{ id: 'ear', src: 'listen' }, { src: 'wait' }],
  initial: 'a',
  states: {
    a: { tags: ['first'], on: { go: { target: 'b', actions: assign({ list: ['y'] }) } } },
    b: { type: 'final' },
  },
})

const onWire = <Message>(message: Message): Message => JSON.parse(JSON.stringify(message)) as Message

function withoutCircles<Message extends { snapshot: object }>(message: Message): Message {
  const { value, status } = message.snapshot as { value?: unknown; status?: unknown }
  return { ...message, snapshot: { value, status } }
}

/** What each inspector sent. */
async function bothOf(run: (inspect: (event: InspectionEvent) => void) => unknown) {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url, { redact: false, clock: { ...systemClock, now: () => 5 } })
  const theirs: StatelyInspectionEvent[] = []
  const stately = createStatelyInspector({
    // Its snapshot of a new actor may be circular: the socket serialises it.
    send: (message) => theirs.push(onWire(message.type === '@xstate.actor' ? withoutCircles(message) : message)),
  })
  await run((event) => {
    stately.inspect.next?.(event)
    inspector.next(event)
  })
  await flushTo(inspector, received)
  return { ours: received.messages as unknown as InspectionMessage[], theirs: theirs as unknown as InspectionMessage[] }
}

const actors: [string, AnyStateMachine, unknown, { type: string }[]][] = [
  [
    'an async task',
    asyncTaskMachine.provide({ actions: { requestAbort: () => {} } }),
    { id: 'a', subagentName: 's', graceMs: 5, timeoutMs: 1e6 },
    [
      { type: 'nonsense' },
      { type: 'task.complete', output: { final_message: 'done', list: [1, { two: 2 }] } } as never,
    ],
  ],
  ['a command task', commandTaskMachine, { totalCommands: 2 }, [{ type: 'task.start' }, { type: 'command.succeeded' }]],
  [
    'a lane',
    laneMachine,
    { instanceId: 'i', host: { hasNext: () => true, startCall: () => {} } },
    [{ type: 'lane.wake' }],
  ],
  [
    'an instance',
    instanceMachine,
    { timing: { livenessMs: 1e6 }, host: { failCalls: () => {} } },
    [{ type: 'connection.opened' }, { type: 'connection.lost' }],
  ],
  ['an odd machine', oddMachine, undefined, [{ type: 'go' }]],
]

it.each(actors)('sends the same messages for %s as Stately’s own inspector', async (_name, machine, input, events) => {
  const { ours, theirs } = await bothOf(async (inspect) => {
    const actor = createActor(machine, { input, inspect })
    actor.start()
    for (const event of events) actor.send(event)
    actor.stop()
    // For the promise actor, if there is one.
    await Promise.resolve()
  })
  expect(asDeepAs(theirs.map(comparable), ours.map(comparable))).toEqual(theirs.map(comparable))
  expect(ours.map(({ createdAt }) => createdAt)).toEqual(ours.map(() => '5'))
})

it('shows the first snapshot of an actor; theirs shows the one at the time of sending', async () => {
  const { ours, theirs } = await bothOf((inspect) => {
    const actor = createActor(commandTaskMachine, { input: { totalCommands: 1 }, inspect })
    actor.start()
    actor.send({ type: 'task.start' })
  })
  expect(ours[0]).toMatchObject({ type: '@xstate.actor', snapshot: { value: 'queued', status: 'active' } })
  expect(theirs[0]).toMatchObject({ type: '@xstate.actor', snapshot: { value: 'running' } })
})

it('has the types of the package, except for the id, which the package leaves null as well', () => {
  type Theirs<Type> = Omit<Extract<StatelyInspectionEvent, { type: Type }>, 'id' | 'snapshot' | 'event'>
  expectTypeOf<ActorMessage>().toExtend<Theirs<'@xstate.actor'>>()
  expectTypeOf<EventMessage>().toExtend<Theirs<'@xstate.event'>>()
  expectTypeOf<SnapshotMessage>().toExtend<Theirs<'@xstate.snapshot'>>()
})

/** Theirs cuts a definition at a depth. */
function asDeepAs(theirs: unknown, ours: unknown): unknown {
  if (theirs === '[Array]' && Array.isArray(ours)) return theirs
  if (theirs === '[Object]' && typeof ours === 'object') return theirs
  if (Array.isArray(ours)) {
    return ours.map((inner, index) => asDeepAs((theirs as unknown[] | undefined)?.[index], inner))
  }
  if (typeof ours !== 'object' || ours === null) return ours
  const fields = Object.entries(ours).map(([key, inner]) => [
    key,
    asDeepAs((theirs as Record<string, unknown> | undefined)?.[key], inner),
  ])
  return Object.fromEntries(fields) as unknown
}

/** Theirs shows a later snapshot of a new actor; the order of the fields in a definition may differ. */
function comparable(message: InspectionMessage): unknown {
  const { createdAt: _createdAt, ...rest } = message
  if (rest.type !== '@xstate.actor') return rest
  const { snapshot: _snapshot, definition, ...others } = rest
  return { ...others, definition: JSON.parse(definition) as unknown }
}
