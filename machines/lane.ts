/**
 * The lane of one instance. It runs the commands of its tasks one at a time, in the order in which the tasks were submitted.
 *
 * L1  At most one call is in flight, even if the instance is lost and returns.
 * L2  Tasks start in the order of submission.
 * L3  After a call is abandoned, the next call starts when the abandoned call has settled or its grace period has passed.
 * L4  A call that exceeds its time limit is abandoned.
 *
 * The host starts the calls, aborts them and measures their time. When the grace period of an abandoned call has passed, the host reports the call as
 * settled. So the machine needs no timer.
 */
import { setup, type ActorRefFrom } from 'xstate'

/** The effects of a lane, provided by the host. They are called inside a transition and must not send events to the lane. */
export interface LaneHost {
  /** Whether a command may start. A paused lane starts no task, but continues the commands of a task that has started. */
  hasNext(): boolean
  /** Starts the next command. The host sends `call.settled` when the call has ended, and `call.timedOut` when the call has exceeded its time limit. */
  startCall(): void
  /** Aborts the call in flight. */
  abortCall(): void
  /** Fails the command in flight, because its time limit has passed. After that the machine calls `abortCall`. */
  timeOutCall(): void
}

/** The events of a lane. */
export type LaneEvent =
  /** A task was added, or the lane was resumed. */
  | { readonly type: 'lane.wake' }
  /** The call in flight has settled, or the grace period after its abort has passed. */
  | { readonly type: 'call.settled' }
  /** The call in flight has exceeded its time limit. */
  | { readonly type: 'call.timedOut' }
  /** The task of the call in flight was cancelled, or its instance was lost. */
  | { readonly type: 'call.abort' }

/** The input of `laneMachine`. */
export interface LaneInput {
  /** The instance that runs the commands. */
  readonly instanceId: string
  /** The effects of the lane. */
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
  description: 'The queue of one instance, and the loop that runs its commands.',
  context: ({ input }) => input,
  initial: 'idle',
  states: {
    idle: {
      description: 'No command runs, because the queue is empty or the lane is paused.',
      on: { 'lane.wake': { guard: 'hasNext', target: 'calling', description: 'A task may start.' } },
    },
    calling: {
      description: 'One command is in flight.',
      entry: 'startCall',
      on: {
        'call.settled': [
          { guard: 'hasNext', actions: 'startCall', description: 'The next command starts at once.' },
          { target: 'idle', description: 'No command is left.' },
        ],
        'call.timedOut': {
          target: 'releasing',
          actions: 'timeOutCall',
          description: 'The command exceeded its time limit. Its task fails.',
        },
        'call.abort': {
          target: 'releasing',
          description: 'The task of the call was cancelled, or its instance was lost.',
        },
      },
    },
    releasing: {
      description:
        'The call was abandoned. The next command starts when it has settled or its grace period has passed.',
      entry: 'abortCall',
      on: {
        'call.settled': [
          { guard: 'hasNext', target: 'calling', description: 'The lane is free, and the next command starts.' },
          { target: 'idle', description: 'The lane is free, and the queue is empty.' },
        ],
      },
    },
  },
})

/** The type of `laneMachine`. */
export type LaneMachine = typeof laneMachine
/** An actor that runs `laneMachine`. */
export type LaneRef = ActorRefFrom<LaneMachine>
