/** The instances of the model: their states, and what happens when a connection opens or is lost. */
import type { InstanceState } from '../../../src/command-tasks/instances/instance-manager.js'
import { InstanceError } from '../../../src/errors.js'
import { nthLast } from '../drawing.js'
import { laneInstances, type LaneInstance } from './actions.js'
import { createModelledOutbox, type ModelledLoop } from './modelled-loop.js'

/** One connection of an instance. After a loss, the instance gets a new one. */
export interface ModelledConnection extends LaneInstance {
  state: InstanceState
  expiry: unknown
}

export function createModelledInstances(
  { clock }: ModelledLoop,
  {
    onGone,
    failCalls,
  }: {
    /** Called when a connection has ended: its tasks fail. */
    readonly onGone: (connection: ModelledConnection) => void
    /** Fails the calls over a connection at once. */
    readonly failCalls: (connection: ModelledConnection) => void
  },
) {
  const known = new Map<string, ModelledConnection>()
  const all: ModelledConnection[] = []
  const outbox = createModelledOutbox()

  function end(connection: ModelledConnection): void {
    if (connection.state === 'disconnected') return
    outbox.batch(() => {
      clock.clearTimeout(connection.expiry)
      connection.state = 'disconnected'
      if (connection.kind === 'websocket') failCalls(connection)
      known.delete(connection.id)
      outbox.push(() => onGone(connection))
    })
  }

  return {
    get: (id: string): ModelledConnection | undefined => known.get(id),
    first: (): ModelledConnection | undefined => [...known.values()].find(({ state }) => state === 'connected'),
    list: (): [string, InstanceState][] => Array.from(known.values(), ({ id, state }) => [id, state]),
    connect(id: string): void {
      if (known.has(id)) throw new InstanceError('INSTANCE_ID_IN_USE', id, `${id} is in use`)
      const { kind, connectTimeoutMs } = laneInstances.find((one) => one.id === id) ?? { kind: 'local' as const }
      const connection: ModelledConnection = {
        id,
        kind,
        state: kind === 'websocket' ? 'connecting' : 'connected',
        expiry: undefined,
      }
      known.set(id, connection)
      all.push(connection)
      if (kind === 'websocket' && connectTimeoutMs !== undefined) {
        connection.expiry = clock.setTimeout(() => end(connection), connectTimeoutMs)
      }
    },
    open(id: string): void {
      const connection = known.get(id)
      if (connection?.state !== 'connecting') return
      clock.clearTimeout(connection.expiry)
      connection.state = 'connected'
    },
    takeOver(id: string): void {
      const connection = known.get(id)
      if (connection?.kind === 'websocket' && connection.state === 'connected') failCalls(connection)
    },
    disconnect(id: string): boolean {
      const connection = known.get(id)
      if (connection !== undefined) end(connection)
      return connection !== undefined
    },
    lose(id: string, nth: number): void {
      const connection = nthLast(
        all.filter((one) => one.id === id),
        nth,
      )
      if (connection !== undefined) end(connection)
    },
  }
}
