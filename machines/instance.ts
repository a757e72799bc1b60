/**
 * The connection of one instance.
 *
 * I1  An instance ends once; a new connection under its id is a new instance, or takes this one's connection over.
 * I2  A registration that never connects expires.
 * I3  A connection that shows no sign of life for too long is lost.
 * I4  A take-over is not a loss: the calls of the old connection fail at once, the instance stays connected.
 */
import { setup, type ActorRefFrom, type SnapshotFrom } from 'xstate'

/** All in ms; without a limit the instance is trusted to say when it ends. */
export interface InstanceTiming {
  /** How long it may take to connect. */
  readonly connectTimeoutMs?: number
  /** The longest silence of a connection. */
  readonly livenessMs?: number
}

interface InstanceContext {
  readonly timing: InstanceTiming
}

/** What moves an instance. */
export type InstanceEvent =
  | { readonly type: 'connection.opened' }
  | { readonly type: 'connection.alive' }
  | { readonly type: 'connection.takenOver' }
  | { readonly type: 'connection.lost' }
  | { readonly type: 'instance.disconnect' }

function mustProvide(name: string): never {
  throw new Error(`instance: the host must provide the action ${name}`)
}

/** The chart of one instance's connection. `failCalls` must be provided. */
export const instanceMachine = setup({
  types: {
    context: {} as InstanceContext,
    events: {} as InstanceEvent,
    input: {} as InstanceContext,
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
    failCalls: () => mustProvide('failCalls'),
  },
}).createMachine({
  id: 'instance',
  description: 'Something that runs commands: a set of functions, an MCP server, a remote worker.',
  context: ({ input }) => input,
  initial: 'connecting',
  states: {
    connecting: {
      description: 'It is known, and cannot be used yet.',
      initial: 'unhurried',
      on: {
        'connection.opened': { target: 'connected', description: 'It can be used from now on.' },
        'connection.lost': { target: 'disconnected', description: 'It went before it could be used.' },
        'instance.disconnect': { target: 'disconnected', description: 'Someone ended it.' },
      },
      states: {
        unhurried: {
          description: 'It may take as long as it likes.',
          always: { guard: 'hasConnectTimeout', target: 'hurried', description: 'A limit was set.' },
        },
        hurried: {
          description: 'The limit of its connecting is being waited for.',
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
          description: 'A new connection replaces the present one, whose calls fail.',
        },
        'connection.lost': { target: 'disconnected', description: 'Its connection ended.' },
        'instance.disconnect': { target: 'disconnected', description: 'Someone ended it.' },
      },
      states: {
        trusted: {
          description: 'It says itself when it ends.',
          always: { guard: 'hasLiveness', target: 'watched', description: 'A limit of silence was set.' },
        },
        watched: {
          description: 'It has to show signs of life.',
          on: {
            'connection.alive': {
              target: 'watched',
              reenter: true,
              description: 'A sign of life: the wait starts over.',
            },
          },
          after: { liveness: { target: '#instance.disconnected', description: 'No sign of life for too long.' } },
        },
      },
    },
    disconnected: {
      type: 'final',
      entry: 'failCalls',
      description: 'It is gone; its tasks have failed.',
    },
  },
})

/** The type of `instanceMachine`. */
export type InstanceMachine = typeof instanceMachine
/** An actor that runs `instanceMachine`. */
export type InstanceRef = ActorRefFrom<InstanceMachine>
/** A snapshot of such an actor. */
export type InstanceSnapshot = SnapshotFrom<InstanceMachine>
