/**
 * One command task. It is queued until the lane of its instance starts it. Then it runs its commands one after another.
 *
 * C1  A task ends in exactly one of completed, failed, cancelled. Later events have no effect.
 * C2  Commands run in order. The first command that fails ends the task.
 * C3  A queued task never runs if it is cancelled or its instance is lost.
 */
import { assertEvent, assign, setup, type ActorRefFrom } from 'xstate'

/** Why a command or a task failed. */
export interface CommandFailure {
  /** The error code, such as `COMMAND_TIMEOUT`. Codes do not change between versions. */
  readonly code: string
  /** The error in words, for people. */
  readonly message: string
}

export type CommandTaskEnd =
  | { readonly status: 'completed'; readonly error?: never }
  | { readonly status: 'failed' | 'cancelled'; readonly error: CommandFailure }

export type CommandTaskEvent =
  | { readonly type: 'task.start' }
  | { readonly type: 'task.cancel'; readonly error: CommandFailure }
  | { readonly type: 'command.succeeded' }
  | { readonly type: 'command.failed'; readonly error: CommandFailure }
  | { readonly type: 'instance.lost'; readonly error: CommandFailure }

export interface CommandTaskInput {
  /** How many commands the task has. */
  readonly totalCommands: number
}

interface CommandTaskContext {
  readonly totalCommands: number
  /** The index of the current or next command, from 0. */
  readonly index: number
  /** How the task ended. Set only if it failed or was cancelled. */
  readonly end: CommandTaskEnd | undefined
}

const COMPLETED: CommandTaskEnd = { status: 'completed' }

/** The machine of one command task. It has no host effects. */
export const commandTaskMachine = setup({
  types: {
    context: {} as CommandTaskContext,
    events: {} as CommandTaskEvent,
    input: {} as CommandTaskInput,
    output: {} as CommandTaskEnd,
  },
  guards: {
    isLastCommand: ({ context }) => context.index + 1 >= context.totalCommands,
  },
  actions: {
    advance: assign({ index: ({ context }) => context.index + 1 }),
    keepFailure: assign(({ event }) => {
      assertEvent(event, ['command.failed', 'instance.lost'])
      return { end: { status: 'failed' as const, error: event.error } }
    }),
    keepCancellation: assign(({ event }) => {
      assertEvent(event, 'task.cancel')
      return { end: { status: 'cancelled' as const, error: event.error } }
    }),
  },
}).createMachine({
  id: 'commandTask',
  description: 'A list of commands for one instance.',
  context: ({ input }) => ({ totalCommands: input.totalCommands, index: 0, end: undefined }),
  initial: 'queued',
  states: {
    queued: {
      description: 'The task waits in its lane for the tasks before it.',
      on: {
        'task.start': { target: 'running', description: 'The lane starts this task.' },
        'task.cancel': {
          target: 'cancelled',
          actions: 'keepCancellation',
          description: 'The task was cancelled before it started and never runs.',
        },
        'instance.lost': {
          target: 'failed',
          actions: 'keepFailure',
          description: 'The instance was lost before the task started. The task never runs.',
        },
      },
    },
    running: {
      description: 'The commands run one at a time.',
      on: {
        'command.succeeded': [
          {
            guard: 'isLastCommand',
            target: 'completed',
            description: 'The last command succeeded.',
          },
          { actions: 'advance', description: 'A command succeeded, and the next one follows.' },
        ],
        'command.failed': {
          target: 'failed',
          actions: 'keepFailure',
          description: 'A command failed or exceeded its time limit. Later commands are skipped.',
        },
        'task.cancel': {
          target: 'cancelled',
          actions: 'keepCancellation',
          description: 'The task was cancelled. The command in flight is aborted.',
        },
        'instance.lost': {
          target: 'failed',
          actions: 'keepFailure',
          description: 'The instance was lost while the task ran.',
        },
      },
    },
    completed: { type: 'final', description: 'Every command succeeded.' },
    failed: { type: 'final', description: 'A command failed or exceeded its time limit, or the instance was lost.' },
    cancelled: { type: 'final', description: 'The task was cancelled.' },
  },
  output: ({ context }) => context.end ?? COMPLETED,
})

/** The type of `commandTaskMachine`. */
export type CommandTaskMachine = typeof commandTaskMachine
/** An actor that runs `commandTaskMachine`. */
export type CommandTaskRef = ActorRefFrom<CommandTaskMachine>
