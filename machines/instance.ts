/**
 * The connection of one instance.
 *
 * I1  An instance ends once. A later connection under its id is another instance.
 * I2  A registration that never connects expires.
 * I3  A connection that is silent for too long is lost.
 * I4  When another socket takes over, the calls of the old one fail at once and the instance stays connected.
 */
import { setup, type ActorRefFrom, type SnapshotFrom } from 'xstate'

/** Time limits of a connection. Without them an instance reports its own end. */
export interface InstanceTiming {
  /** How long it may take to connect, in ms. */
  readonly connectTimeoutMs?: number
  /** How long a connection may be silent, in ms. */
  readonly livenessMs?: number
}

/** What an instance's machine needs from its host. */
export interface InstanceHost {
  /** Fails the calls in flight: another socket took over, or the instance is gone. Called inside a transition. */
  failCalls(cause: 'takenOver' | 'disconnected'): void
}

/** Input of `instanceMachine`. */
export interface InstanceInput {
  /** Its time limits. */
  readonly timing: InstanceTiming
  /** Performs the effects. */
  readonly host: InstanceHost
}

/** Events of an instance. */
export type InstanceEvent =
  | { readonly type: 'connection.opened' }
  | { readonly type: 'connection.alive' }
  | { readonly type: 'connection.takenOver' }
  | { readonly type: 'connection.lost' }
  | { readonly type: 'instance.disconnect' }

/** The machine of one instance's connection. */
export const instanceMachine = setup({
  types: {
    context: {} as InstanceInput,
    events: {} as InstanceEvent,
    input: {} as InstanceInput,
  },
  delays: {
    connectTimeout: ({ context }) => context.timing.connectTimeoutMs ?? 0,
    liveness: ({ context }) => context.timing.livenessMs ?? 0,
  },
  guards: {
    hasConnectTimeout: ({ context }) => context.timing.connectTimeoutMs !== undefined,
    hasLiveness: ({ context }) => context.timing.livenessMs !== undefined,
  },
  actions: {
    failCalls: ({ context, event }) =>
      context.host.failCalls(event.type === 'connection.takenOver' ? 'takenOver' : 'disconnected'),
  },
}).createMachine({
  id: 'instance',
  description: 'Runs commands: functions of this process, an MCP server or a remote worker.',
  context: ({ input }) => input,
  initial: 'connecting',
  states: {
    connecting: {
      description: 'It is registered and takes no commands yet.',
      initial: 'unhurried',
      on: {
        'connection.opened': { target: 'connected', description: 'It takes commands from now on.' },
        'connection.lost': { target: 'disconnected', description: 'It was lost before it connected.' },
        'instance.disconnect': { target: 'disconnected', description: 'It was disconnected on purpose.' },
      },
      states: {
        unhurried: {
          description: 'It may take any time to connect.',
          always: { guard: 'hasConnectTimeout', target: 'hurried', description: 'There is a time limit.' },
        },
        hurried: {
          description: 'It has to connect within a time limit.',
          after: { connectTimeout: { target: '#instance.disconnected', description: 'It did not connect in time.' } },
        },
      },
    },
    connected: {
      description: 'It takes commands.',
      initial: 'trusted',
      on: {
        'connection.takenOver': {
          target: 'connected',
          reenter: true,
          actions: 'failCalls',
          description: 'Another socket replaces the present one, whose calls fail.',
        },
        'connection.lost': { target: 'disconnected', description: 'Its connection ended.' },
        'instance.disconnect': { target: 'disconnected', description: 'It was disconnected on purpose.' },
      },
      states: {
        trusted: {
          description: 'It reports its own end.',
          always: { guard: 'hasLiveness', target: 'watched', description: 'There is a limit on its silence.' },
        },
        watched: {
          description: 'It has to send something from time to time.',
          on: {
            'connection.alive': {
              target: 'watched',
              reenter: true,
              description: 'It is alive: the wait starts over.',
            },
          },
          after: { liveness: { target: '#instance.disconnected', description: 'It was silent for too long.' } },
        },
      },
    },
    disconnected: {
      type: 'final',
      entry: 'failCalls',
      description: 'It is gone, and its tasks have failed.',
    },
  },
})

/** The type of `instanceMachine`. */
export type InstanceMachine = typeof instanceMachine
/** An actor that runs `instanceMachine`. */
export type InstanceRef = ActorRefFrom<InstanceMachine>
/** A snapshot of such an actor. */
export type InstanceSnapshot = SnapshotFrom<InstanceMachine>
