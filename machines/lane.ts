/**
 * One instance's lane: it runs the commands of its tasks one at a time, in the order in which the tasks were submitted.
 *
 * L1  At most one call is in flight, also across the loss and the return of the instance.
 * L2  Tasks are taken in the order of their submission.
 * L3  After a call that was given up, the next starts when that call has settled or its grace has passed.
 * L4  A call that takes longer than its command may is given up.
 *
 * The chart is pure: starting a call, and what its time-out means, are the host's. An engine reports a call that was given up as
 * settled when its grace has passed, so the chart needs no timer for that.
 */
import { setup, type ActorRefFrom, type SnapshotFrom } from 'xstate'

/** Where a lane finds its work. */
export interface LaneWork {
  /** Whether a command can be started. */
  hasNext(): boolean
  /** How long the present command may take, in ms. */
  timeoutMs(): number
}

/** What moves a lane. */
export type LaneEvent =
  /** A task was put in the lane. */
  | { readonly type: 'lane.wake' }
  /** The call in flight has settled, or was abandoned. */
  | { readonly type: 'call.settled' }
  /** The task of the call in flight has ended: by cancellation, or because its instance was lost. */
  | { readonly type: 'call.abort' }

function mustProvide(name: string): never {
  throw new Error(`lane: the host must provide the action ${name}`)
}

/** The chart of one instance's lane. `startCall`, `abortCall` and `timeOutCall` must be provided. */
export const laneMachine = setup({
  types: {
    context: {} as { readonly instanceId: string; readonly work: LaneWork },
    events: {} as LaneEvent,
    input: {} as { readonly instanceId: string; readonly work: LaneWork },
  },
  delays: {
    commandTimeout: ({ context }) => context.work.timeoutMs(),
  },
  guards: {
    hasNext: ({ context }) => context.work.hasNext(),
  },
  actions: {
    startCall: () => mustProvide('startCall'),
    abortCall: () => mustProvide('abortCall'),
    timeOutCall: () => mustProvide('timeOutCall'),
  },
}).createMachine({
  id: 'lane',
  description: "One instance's queue, and its only worker.",
  context: ({ input }) => input,
  initial: 'idle',
  states: {
    idle: {
      description: 'Nothing is queued and nothing runs.',
      on: { 'lane.wake': { guard: 'hasNext', target: 'calling', description: 'A task was put in the lane.' } },
    },
    calling: {
      description: 'One command is in flight.',
      entry: 'startCall',
      after: {
        commandTimeout: {
          target: 'releasing',
          actions: 'timeOutCall',
          description: 'The command took longer than it may: its task fails.',
        },
      },
      on: {
        'call.settled': [
          { guard: 'hasNext', target: 'calling', reenter: true, description: 'The next command starts at once.' },
          { target: 'idle', description: 'That was the last.' },
        ],
        'call.abort': {
          target: 'releasing',
          description: 'The task of the call has ended: it was cancelled, or its instance was lost.',
        },
      },
    },
    releasing: {
      description: 'The call was given up; until it has settled, or its grace has passed, nothing else starts.',
      entry: 'abortCall',
      on: {
        'call.settled': [
          { guard: 'hasNext', target: 'calling', description: 'The lane is free, and the next command starts.' },
          { target: 'idle', description: 'The lane is free, and nothing waits.' },
        ],
      },
    },
  },
})

/** The type of `laneMachine`. */
export type LaneMachine = typeof laneMachine
/** An actor that runs `laneMachine`. */
export type LaneRef = ActorRefFrom<LaneMachine>
/** A snapshot of such an actor. */
export type LaneSnapshot = SnapshotFrom<LaneMachine>
