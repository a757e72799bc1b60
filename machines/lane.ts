/**
 * One instance's lane: it runs the commands of its tasks one at a time, in the order in which the tasks were submitted.
 *
 * L1  At most one call is in flight, also across the loss and the return of the instance.
 * L2  Tasks are taken in the order of their submission.
 * L3  After a call was given up, the next one starts when that call has settled or its grace period has passed.
 * L4  A call that exceeds its time limit is given up.
 *
 * The host starts, times and aborts the calls. It reports a call that was given up as settled when the grace period has passed,
 * so the machine needs no timer.
 */
import { setup, type ActorRefFrom, type SnapshotFrom } from 'xstate'

/** What a lane needs from its host. The methods are called inside a transition and must not send events to the lane. */
export interface LaneHost {
  /** Whether a command is waiting that may start: not the first of a task while the lane is paused. */
  hasNext(): boolean
  /** Starts the next command. The host sends `call.settled` when it has ended, and `call.timedOut` when its time limit has passed. */
  startCall(): void
  /** Aborts the call in flight. */
  abortCall(): void
  /** Fails the command in flight because its time limit has passed. `abortCall` follows. */
  timeOutCall(): void
}

/** Events of a lane. */
export type LaneEvent =
  /** A task was put in the lane, or the lane is paused no longer. */
  | { readonly type: 'lane.wake' }
  /** The call in flight has settled, or was abandoned. */
  | { readonly type: 'call.settled' }
  /** The call in flight has exceeded its time limit. */
  | { readonly type: 'call.timedOut' }
  /** The task of the call in flight has ended: it was cancelled, or its instance was lost. */
  | { readonly type: 'call.abort' }

/** Input of `laneMachine`. */
export interface LaneInput {
  /** The instance that runs the commands. */
  readonly instanceId: string
  /** Performs the effects. */
  readonly host: LaneHost
}

/** The machine of one instance's lane. */
export const laneMachine = setup({
  types: {
    context: {} as LaneInput,
    events: {} as LaneEvent,
    input: {} as LaneInput,
  },
  guards: {
    hasNext: ({ context }) => context.host.hasNext(),
  },
  actions: {
    startCall: ({ context }) => context.host.startCall(),
    abortCall: ({ context }) => context.host.abortCall(),
    timeOutCall: ({ context }) => context.host.timeOutCall(),
  },
}).createMachine({
  id: 'lane',
  description: 'The queue of one instance and its only worker.',
  context: ({ input }) => input,
  initial: 'idle',
  states: {
    idle: {
      description: 'Nothing runs: nothing is queued, or the lane is paused.',
      on: { 'lane.wake': { guard: 'hasNext', target: 'calling', description: 'A task may start.' } },
    },
    calling: {
      description: 'One command is in flight.',
      entry: 'startCall',
      on: {
        'call.settled': [
          { guard: 'hasNext', actions: 'startCall', description: 'The next command starts at once.' },
          { target: 'idle', description: 'That was the last command.' },
        ],
        'call.timedOut': {
          target: 'releasing',
          actions: 'timeOutCall',
          description: 'The command exceeded its time limit: its task fails.',
        },
        'call.abort': {
          target: 'releasing',
          description: 'The task of the call has ended: it was cancelled, or its instance was lost.',
        },
      },
    },
    releasing: {
      description: 'The call was given up. Nothing else starts until it has settled or its grace period has passed.',
      entry: 'abortCall',
      on: {
        'call.settled': [
          { guard: 'hasNext', target: 'calling', description: 'The lane is free, and the next command starts.' },
          { target: 'idle', description: 'The lane is free, and nothing is queued.' },
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
