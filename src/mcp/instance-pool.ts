/**
 * The instances of the configuration. They are connected in the background, so that a slow or broken one does not delay the others. One
 * that has failed or disconnected is connected again when a call needs it.
 */
import { resolve } from 'node:path'
import type { Clock } from '../clock.js'
import { createDelay } from '../instances/delay.js'
import { InstanceManager } from '../instances/instance-manager.js'
import { mcpInstance, type MCPInstanceOptions } from '../instances/mcp-instance.js'
import type { Log } from '../http/log.js'
import type { InstanceConfig } from '../protocol/agent-config.js'
import { describeFailure } from '../protocol/outcomes.js'

/** The state of a configured instance. */
export interface PooledInstance {
  readonly id: string
  readonly state: 'connecting' | 'connected' | 'failed'
  /** Why it failed. */
  readonly error?: string
}

export interface InstancePool {
  readonly instances: InstanceManager
  /** Every instance, in the order of the configuration. */
  list(): readonly PooledInstance[]
  /**
   * Resolves when the instance has connected or failed; without an id, when one instance has connected or all have failed. Tries again to
   * connect an instance that failed before. Never rejects.
   */
  ready(id?: string): Promise<void>
  close(): Promise<void>
}

/** How long `close` waits for instances that are still connecting, in ms. */
const CLOSE_MS = 3000

interface Member {
  readonly config: InstanceConfig
  connecting: Promise<void> | undefined
  error: string | undefined
}

/** Starts connecting all instances and returns at once. */
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
  let isClosed = false

  const connect = async (member: Member): Promise<void> => {
    const { id } = member.config
    member.error = undefined
    try {
      const instance = await mcpInstance(toOptions(member.config, folder, clock))
      // `close` did not wait for it.
      if (isClosed) await instance.close()
      else instances.connect(instance)
    } catch (error) {
      member.error = describeFailure(error)
      log('error', `instance ${id} failed to connect`, error)
    }
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
  for (const member of members.values()) void begin(member)

  return {
    instances,
    list: () =>
      [...members.values()].map((member) => ({
        id: member.config.id,
        state: isConnected(member) ? 'connected' : member.connecting === undefined ? 'failed' : 'connecting',
        ...(member.error !== undefined && { error: member.error }),
      })),
    ready: async (id) => {
      const wanted =
        id === undefined ? [...members.values()] : [members.get(id)].filter((member) => member !== undefined)
      if (isClosed || wanted.length === 0 || wanted.some(isConnected)) return
      const attempts = wanted.map(begin)
      // The first that connects is enough.
      await new Promise<void>((done) => {
        for (const [index, attempt] of attempts.entries()) {
          void attempt.then(() => {
            const member = wanted[index]
            if (member !== undefined && isConnected(member)) done()
          })
        }
        void Promise.all(attempts).then(() => done())
      })
    },
    close: async () => {
      isClosed = true
      // An instance that never starts is a child of this process, and ends with it.
      const patience = createDelay(clock, CLOSE_MS)
      await Promise.race([
        Promise.all([...members.values()].map(({ connecting = Promise.resolve() }) => connecting)),
        patience.passed,
      ])
      patience.cancel()
      await instances.dispose()
    },
  }
}

function toOptions(config: InstanceConfig, folder: string, clock: Clock): MCPInstanceOptions {
  const { id, command, args, env, cwd, url, headers, startTimeoutMs } = config
  const common = { id, startTimeoutMs, clock }
  return url === undefined
    ? { ...common, command: command ?? '', args, env, cwd: resolve(folder, cwd ?? '.') }
    : { ...common, url, headers }
}
