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
  readonly connectTimeoutMs?: number
  readonly livenessMs?: number
}

interface InstanceContext {
  readonly timing: InstanceTiming
}

export type InstanceEvent =
  | { readonly type: 'connection.opened' }
  | { readonly type: 'connection.alive' }
  | { readonly type: 'connection.takenOver' }
  | { readonly type: 'connection.lost' }
  | { readonly type: 'instance.disconnect' }

function mustProvide(name: string): never {
  throw new Error(`instance: the host must provide the action ${name}`)
}

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
        'connection.opened': 'connected',
        'connection.lost': 'disconnected',
        'instance.disconnect': 'disconnected',
      },
      states: {
        unhurried: { always: { guard: 'hasConnectTimeout', target: 'hurried' } },
        hurried: { after: { connectTimeout: '#instance.disconnected' } },
      },
    },
    connected: {
      description: 'It takes commands.',
      initial: 'trusted',
      on: {
        'connection.takenOver': { target: 'connected', reenter: true, actions: 'failCalls' },
        'connection.lost': 'disconnected',
        'instance.disconnect': 'disconnected',
      },
      states: {
        trusted: { always: { guard: 'hasLiveness', target: 'watched' } },
        watched: {
          on: { 'connection.alive': { target: 'watched', reenter: true } },
          after: { liveness: '#instance.disconnected' },
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

export type InstanceMachine = typeof instanceMachine
export type InstanceRef = ActorRefFrom<InstanceMachine>
export type InstanceSnapshot = SnapshotFrom<InstanceMachine>
