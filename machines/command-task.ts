/**
 * One command task: queued until its lane takes it, then one command after the other.
 *
 * C1  A task ends in exactly one of completed, failed, cancelled; whatever arrives later changes nothing.
 * C2  Commands go in order; the first that fails ends the task.
 * C3  A task that is still queued can be cancelled or lose its instance, and then never runs.
 */
import { assertEvent, assign, setup, type ActorRefFrom, type SnapshotFrom } from 'xstate'

/** What a command or an instance reports when it fails. */
export interface CommandFailure {
  /** Stable and machine-readable, as in `COMMAND_TIMEOUT`. */
  readonly code: string
  /** In words. */
  readonly message: string
}

/** How a task ended. */
export type CommandTaskEnd =
  | { readonly status: 'completed'; readonly error?: never }
  | { readonly status: 'failed' | 'cancelled'; readonly error: CommandFailure }

/** What moves a command task. */
export type CommandTaskEvent =
  | { readonly type: 'task.start' }
  | { readonly type: 'task.cancel'; readonly error: CommandFailure }
  | { readonly type: 'command.succeeded' }
  | { readonly type: 'command.failed'; readonly error: CommandFailure }
  | { readonly type: 'instance.lost'; readonly error: CommandFailure }

interface CommandTaskContext {
  readonly totalCommands: number
  /** The command that runs, or runs next. */
  readonly index: number
  readonly end: CommandTaskEnd | undefined
}

const COMPLETED: CommandTaskEnd = { status: 'completed' }

/** The chart of one command task. It needs nothing from a host. */
export const commandTaskMachine = setup({
  types: {
    context: {} as CommandTaskContext,
    events: {} as CommandTaskEvent,
    input: {} as { readonly totalCommands: number },
    output: {} as CommandTaskEnd,
  },
  guards: {
    isLastCommand: ({ context }) => context.index + 1 >= context.totalCommands,
  },
  actions: {
    advance: assign({ index: ({ context }) => context.index + 1 }),
    keepSuccess: assign({ end: COMPLETED }),
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
      description: 'Waits in its lane for the tasks before it.',
      on: {
        'task.start': { target: 'running', description: 'Its lane has come to it.' },
        'task.cancel': {
          target: 'cancelled',
          actions: 'keepCancellation',
          description: 'Someone called it off before it started: it never runs.',
        },
        'instance.lost': {
          target: 'failed',
          actions: 'keepFailure',
          description: 'Its instance went before it started: it never runs.',
        },
      },
    },
    running: {
      description: 'Its commands run, one at a time.',
      on: {
        'command.succeeded': [
          {
            guard: 'isLastCommand',
            target: 'completed',
            actions: 'keepSuccess',
            description: 'The last command succeeded.',
          },
          { actions: 'advance', description: 'A command succeeded, and another follows.' },
        ],
        'command.failed': {
          target: 'failed',
          actions: 'keepFailure',
          description: 'A command failed or took too long; the rest is skipped.',
        },
        'task.cancel': {
          target: 'cancelled',
          actions: 'keepCancellation',
          description: 'Someone called it off; its command in flight is aborted.',
        },
        'instance.lost': { target: 'failed', actions: 'keepFailure', description: 'Its instance went while it ran.' },
      },
    },
    completed: { type: 'final', description: 'Every command succeeded.' },
    failed: { type: 'final', description: 'A command failed or took too long, or the instance was lost.' },
    cancelled: { type: 'final', description: 'Someone called it off.' },
  },
  output: ({ context }) => context.end ?? COMPLETED,
})

/** The type of `commandTaskMachine`. */
export type CommandTaskMachine = typeof commandTaskMachine
/** An actor that runs `commandTaskMachine`. */
export type CommandTaskRef = ActorRefFrom<CommandTaskMachine>
/** A snapshot of such an actor. */
export type CommandTaskSnapshot = SnapshotFrom<CommandTaskMachine>
