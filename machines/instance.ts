/**
 * The connection of one instance.
 *
 * I1  An instance ends once. A later connection with the same id is another instance.
 * I2  A registration that never connects expires.
 * I3  A connection that is silent for too long counts as lost.
 * I4  When a new socket takes over a connection, the calls of the old socket fail at once and the instance stays connected.
 */
import { setup, type ActorRefFrom } from 'xstate'

/** The time limits of a connection. Without limits, the end of an instance must be reported with an event. */
export interface InstanceTiming {
  /** How long a registered instance may take to connect, in ms. */
  readonly connectTimeoutMs?: number
  /** How long a connection may be silent, in ms. */
  readonly livenessMs?: number
}

/** The effects of an instance, provided by the host. */
export interface InstanceHost {
  /** Fails the calls in flight, because another socket took over or the instance is gone. Called inside a transition, so it must not throw. */
  failCalls(cause: 'takenOver' | 'disconnected'): void
}

/** The input of `instanceMachine`. */
export interface InstanceInput {
  /** The time limits of the connection. */
  readonly timing: InstanceTiming
  /** The effects of the instance. */
  readonly host: InstanceHost
}

/** The events of an instance. */
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
      description: 'The instance is registered and takes no commands yet.',
      initial: 'unhurried',
      on: {
        'connection.opened': { target: 'connected', description: 'The instance has connected.' },
        'connection.lost': { target: 'disconnected', description: 'The instance was lost before it connected.' },
        'instance.disconnect': { target: 'disconnected', description: 'The instance was disconnected on purpose.' },
      },
      states: {
        unhurried: {
          description: 'There is no time limit for the connection.',
          always: { guard: 'hasConnectTimeout', target: 'hurried', description: 'The connection has a time limit.' },
        },
        hurried: {
          description: 'The instance must connect within a time limit.',
          after: {
            connectTimeout: { target: '#instance.disconnected', description: 'The instance did not connect in time.' },
          },
        },
      },
    },
    connected: {
      description: 'The instance takes commands.',
      initial: 'trusted',
      on: {
        'connection.takenOver': {
          target: 'connected',
          reenter: true,
          actions: 'failCalls',
          description: 'Another socket replaces the current one. Calls of the old socket fail.',
        },
        'connection.lost': { target: 'disconnected', description: 'The connection ended.' },
        'instance.disconnect': { target: 'disconnected', description: 'The instance was disconnected on purpose.' },
      },
      states: {
        trusted: {
          description: 'The instance reports its own end.',
          always: { guard: 'hasLiveness', target: 'watched', description: 'The connection has a liveness limit.' },
        },
        watched: {
          description: 'The instance must send a message within each liveness period.',
          on: {
            'connection.alive': {
              target: 'watched',
              reenter: true,
              description: 'The instance is alive. The period starts over.',
            },
          },
          after: {
            liveness: { target: '#instance.disconnected', description: 'The instance was silent for too long.' },
          },
        },
      },
    },
    disconnected: {
      type: 'final',
      entry: 'failCalls',
      description: 'The instance is gone, and its tasks have failed.',
    },
  },
})

/** The type of `instanceMachine`. */
export type InstanceMachine = typeof instanceMachine
/** An actor that runs `instanceMachine`. */
export type InstanceRef = ActorRefFrom<InstanceMachine>
