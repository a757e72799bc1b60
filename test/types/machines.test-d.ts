/** The types of `agent-tasks/machines`: compiled by `npm run types`, never run. */
import { expectTypeOf } from 'vitest'
import { createActor } from 'xstate'
import {
  asyncTaskMachine,
  commandTaskMachine,
  deliveryMachine,
  instanceMachine,
  laneMachine,
} from 'agent-tasks/machines'
import type { AsyncTaskHost, AsyncTaskRef, AsyncTaskSnapshot } from '../../machines/async-task.js'
import type { CommandFailure, CommandTaskEnd } from '../../machines/command-task.js'
import type { OutputObject, Settlement } from '../../machines/records.js'
import type { RegistrySnapshot } from '../../machines/registry-snapshot.js'
import type { TerminalStatus } from '../../machines/task-status.js'

declare const settlement: Settlement
declare const host: AsyncTaskHost
declare const end: CommandTaskEnd

export function anEndIsNarrowedByItsStatus(): void {
  if (settlement.status === 'completed') expectTypeOf(settlement.output).toEqualTypeOf<OutputObject>()
  if (settlement.status === 'failed') expectTypeOf(settlement.error).toEqualTypeOf<string>()
  // @ts-expect-error a cancelled task has no output
  if (settlement.status === 'cancelled') expectTypeOf(settlement.output)
  if (end.status === 'completed') expectTypeOf(end.error).toEqualTypeOf<undefined>()
  else expectTypeOf(end.error).toEqualTypeOf<CommandFailure>()
}

export function eachStatusOfAnEndedTaskIsAFinalState(): void {
  expectTypeOf<TerminalStatus>().toExtend<Extract<AsyncTaskSnapshot['value'], string>>()
}

export function anActorTakesItsEventsAndNoOthers(): void {
  const actor = createActor(asyncTaskMachine, { input: { id: 'a', subagentName: 'x', host } })
  expectTypeOf(actor).toExtend<AsyncTaskRef>()
  expectTypeOf(actor.getSnapshot().output).toEqualTypeOf<Settlement | undefined>()
  actor.send({ type: 'task.complete', output: {} })
  // @ts-expect-error a completed task has an output
  actor.send({ type: 'task.complete' })
  // @ts-expect-error no such event
  actor.send({ type: 'task.completed', output: {} })
  expectTypeOf(actor.getSnapshot().matches({ active: 'stopping' })).toBeBoolean()
  // @ts-expect-error no such state
  actor.getSnapshot().matches('done')
  // @ts-expect-error it is inside active
  actor.getSnapshot().matches('stopping')
}

export function aMachineSaysWhatItNeeds(): void {
  // @ts-expect-error a task has an id
  createActor(asyncTaskMachine, { input: { subagentName: 'x', host } })
  // @ts-expect-error a command task has commands
  createActor(commandTaskMachine, { input: {} })
  // @ts-expect-error a lane has a host
  createActor(laneMachine, { input: { instanceId: 'a' } })
  createActor(instanceMachine, { input: { timing: { livenessMs: 5 }, host: { failCalls: () => undefined } } })
  // @ts-expect-error no such limit
  createActor(instanceMachine, { input: { timing: { pingMs: 5 }, host: { failCalls: () => undefined } } })
  // @ts-expect-error no such guard
  deliveryMachine.provide({ guards: { isAgentAsleep: () => true } })
}

export function aSnapshotOfTheRegistryIsNarrow(): void {
  expectTypeOf<RegistrySnapshot['phase']>().toEqualTypeOf<'available' | 'full' | 'draining' | 'disposed'>()
}
