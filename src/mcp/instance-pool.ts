/**
 * Connects the instances of the configuration. The first call that needs an instance connects it, so an unused server starts no programs. After a
 * failure or a disconnection, the next call that needs the instance connects it again.
 */
import { resolve } from 'node:path'
import type { Clock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { createDelay } from '../command-tasks/instances/delay.js'
import { InstanceManager } from '../command-tasks/instances/instance-manager.js'
import { mcpInstance, type MCPInstanceOptions } from '../command-tasks/instances/mcp-instance.js'
import type { Log } from '../server/http/log.js'
import type { InstanceConfig } from '../protocol/agent-config.js'
import { describeFailure } from '../protocol/outcomes.js'

export type PooledState = 'idle' | 'connecting' | 'connected' | 'failed'

export interface PooledInstance {
  readonly id: string
  /** `idle`: no call has needed it yet. */
  readonly state: PooledState
  /** Why the last attempt to connect failed, or why the connection was lost. */
  readonly error?: string
}

export interface InstancePool {
  readonly instances: InstanceManager
  /** Every instance, in the order of the configuration. */
  list(): readonly PooledInstance[]
  /**
   * Connects an instance if it is not connected. Without an id, any connected instance is enough: if there is none, the instances are tried in the order
   * of the configuration until one connects. Never rejects.
   * @returns why no instance is connected; undefined when one is, or when the id is unknown
   */
  ready(id?: string): Promise<string | undefined>
  /** Connects all instances. Resolves when each has connected or failed, or after `limitMs`. Never rejects. */
  connectAll(limitMs: number): Promise<void>
  /** Disconnects all instances and ends their programs, including those that are still connecting. */
  close(): Promise<void>
}

/** How long `close` waits for remote servers that are still connecting, in ms. */
const CLOSE_MS = 3000

interface Member {
  readonly config: InstanceConfig
  connecting: Promise<void> | undefined
  error: string | undefined
}

/** Creates the pool. Starts no program. */
export function createInstancePool(
  configs: readonly InstanceConfig[],
  { folder, clock, log }: { readonly folder: string; readonly clock: Clock; readonly log: Log },
): InstancePool {
  const instances = new InstanceManager({
    clock,
    onError: (error, { source, instanceId }) => log('error', `${source} of instance ${instanceId}`, error),
  })
  const members = new Map<string, Member>(
    configs.map((config) => [config.id, { config, connecting: undefined, error: undefined }]),
  )
  const starting = new AbortController()
  let isClosed = false

  const connect = async (member: Member): Promise<void> => {
    const { id } = member.config
    member.error = undefined
    try {
      const instance = await mcpInstance(toOptions(member.config, { folder, clock, signal: starting.signal }))
      // The pool was closed while the instance connected, and `close` has not closed this instance.
      if (isClosed) await instance.close()
      else instances.connect(instance)
    } catch (error) {
      member.error = describeFailure(error)
      if (isClosed) return
      log('error', `instance ${id} failed to connect`, error)
    }
  }
  const stateOf = (member: Member): PooledState => {
    if (isConnected(member)) return 'connected'
    if (member.connecting !== undefined) return 'connecting'
    return member.error === undefined ? 'idle' : 'failed'
  }
  const isConnected = ({ config: { id } }: Member): boolean => instances.get(id)?.isConnected === true
  const begin = (member: Member): Promise<void> =>
    (member.connecting ??= connect(member).finally(() => (member.connecting = undefined)))

  instances.onDisconnect((id, reason) => {
    const member = members.get(id)
    if (member === undefined || isClosed) return
    member.error = reason
    log('warn', `instance ${id} disconnected: ${reason}`)
  })
  return {
    instances,
    list: () =>
      [...members.values()].map((member) => ({
        id: member.config.id,
        state: stateOf(member),
        ...omitUndefined({ error: member.error }),
      })),
    ready: async (id) => {
      const wanted = [...members.values()].filter(({ config }) => id === undefined || config.id === id)
      if (wanted.some(isConnected)) return undefined
      for (const member of wanted) {
        if (isClosed) return 'The server is closing.'
        await begin(member)
        if (isConnected(member)) return undefined
      }
      const failures = wanted.map(({ config, error = 'it was disconnected' }) => `Instance ${config.id}: ${error}`)
      return failures.length === 0 ? undefined : `${failures.join('\n')}\nThe next call tries again.`
    },
    connectAll: async (limitMs) => {
      if (isClosed) return
      const patience = createDelay(clock, limitMs)
      const missing = [...members.values()].filter((member) => !isConnected(member))
      await Promise.race([Promise.all(missing.map(begin)), patience.passed])
      patience.cancel()
    },
    close: async () => {
      isClosed = true
      starting.abort(new Error('The server is closing.'))
      const connecting = (isProgram: boolean): Promise<unknown> =>
        Promise.all(
          [...members.values()].flatMap((member) =>
            (member.config.command !== undefined) === isProgram ? [member.connecting ?? Promise.resolve()] : [],
          ),
        )
      const patience = createDelay(clock, CLOSE_MS)
      // A program ends within its grace period, so `close` waits for all programs. A remote server that answers later is closed by `connect`.
      await Promise.all([connecting(true), Promise.race([connecting(false), patience.passed])])
      patience.cancel()
      await instances.dispose()
    },
  }
}

interface Circumstances {
  readonly folder: string
  readonly clock: Clock
  readonly signal: AbortSignal
}

function toOptions(config: InstanceConfig, { folder, clock, signal }: Circumstances): MCPInstanceOptions {
  const { id, command, args, env, cwd, url, headers, startTimeoutMs } = config
  const common = { id, startTimeoutMs, clock }
  return url === undefined
    ? { ...common, signal, command: command ?? '', args, env, cwd: resolve(folder, cwd ?? '.') }
    : { ...common, url, headers }
}
