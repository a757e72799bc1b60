/** The types of `agent-tasks/inspect`: compiled by `npm run types`, never run. */
import { expectTypeOf } from 'vitest'
import { AsyncTaskManager, createAgentTasks } from 'agent-tasks'
import { createInspector } from 'agent-tasks/inspect'
import type { InspectorErrorSource } from '../../src/observability/inspect/inspector-types.js'
import type {
  ActorMessage,
  EventMessage,
  InspectionMessage,
  SnapshotMessage,
} from '../../src/observability/inspect/messages.js'

declare const message: InspectionMessage

export function oneOptionTakesIt(): void {
  const inspect = createInspector({
    filter: (shown) => {
      expectTypeOf(shown).toEqualTypeOf<InspectionMessage>()
      return shown.type !== '@xstate.snapshot'
    },
    onError: (error, source) => {
      expectTypeOf(error).toEqualTypeOf<unknown>()
      expectTypeOf(source).toEqualTypeOf<InspectorErrorSource>()
    },
  })
  new AsyncTaskManager({ inspect })
  createAgentTasks({ inspect })
  expectTypeOf(inspect.close()).toEqualTypeOf<Promise<void>>()
  // @ts-expect-error a filter answers with a boolean
  createInspector({ filter: () => 'all' })
  // @ts-expect-error no such option
  createInspector({ port: 8080 })
}

export function aMessageIsNarrowedByItsType(): void {
  if (message.type === '@xstate.actor') expectTypeOf(message).toEqualTypeOf<ActorMessage>()
  if (message.type === '@xstate.event') expectTypeOf(message).toEqualTypeOf<EventMessage>()
  if (message.type === '@xstate.snapshot') expectTypeOf(message).toEqualTypeOf<SnapshotMessage>()
  // @ts-expect-error no such message
  expectTypeOf(message.type === '@xstate.other')
}
