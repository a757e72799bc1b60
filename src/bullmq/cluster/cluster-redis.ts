/** The Lua scripts of a cluster as functions, on one connection. */
import type { Redis } from 'ioredis'
import type { ServerConfig } from '../../protocol/server-config.js'
import { runScript, type Named, type Script, type ScriptValue } from '../script.js'
import type { ClusterKeys } from './cluster-keys.js'
import * as scripts from './cluster-scripts.js'
import { SUMMARY_FIELDS, toSummary, toTask, type ClusterTask, type Fields } from './task-fields.js'

/** How long the events of an ended task are kept, in ms. */
const LOG_MS = 300_000

export interface TaskWrite {
  readonly fields: Fields
  /** The sequence numbers of the progress reports that are deleted. */
  readonly dropped: readonly number[]
  /** The new events, each with its sequence number. */
  readonly events: readonly { readonly seq: number; readonly json: string }[]
  readonly isEnd: boolean
  /** The number of bytes by which the task grows. */
  readonly bytes: number
}

/** Work that no live node takes care of. */
export interface Stray {
  readonly kind: 'stalled' | 'awaited' | 'joining'
  readonly instanceId: string
  /** The id of one job for `stalled`, otherwise the ids of tasks. */
  readonly ids: readonly string[]
}

/** The limits of the servers. A host that submits tasks must respect them, too. */
export type TaskLimits = Pick<ServerConfig['tasks'], 'maxQueueSize' | 'maxTaskBytes' | 'maxBytes' | 'maxRetained'>

/** The result of the attempt to start a fetched job. `cluster-scripts.ts` explains the values (`BEGIN`). */
type Beginning = 'run' | 'gone' | 'over' | 'stale' | 'unlocked' | 'begun' | 'joining'

export interface ListedInstance {
  readonly id: string
  readonly kind: string
  readonly isConnected: boolean
  readonly queued: number
  /** The tools of the instance as JSON. */
  readonly tools: string | undefined
  readonly connectedAt?: number
  readonly port?: number
  readonly userAgent?: string
}

export type ClusterRedis = ReturnType<typeof createClusterRedis>

export function createClusterRedis(redis: Redis, keys: ClusterKeys, limits: { readonly maxRetained: number }) {
  const run = <Argument extends string>(
    one: Script<'own', Argument>,
    args: Named<Argument, ScriptValue>,
    further: readonly ScriptValue[] = [],
  ): Promise<unknown> => runScript(redis, one, { own: keys.own }, args, further)
  const flat = (fields: Fields): string[] => Object.entries(fields).flat()

  return {
    read: async (taskId: string): Promise<ClusterTask | undefined> =>
      toTask(taskId, await redis.hgetall(keys.task(taskId))),

    /** Atomically reads a task and the events whose sequence numbers are greater than `after`. */
    readWithLog: async (taskId: string, after: number) => {
      const [record, log] = (await redis
        .multi()
        .hgetall(keys.task(taskId))
        .xrange(keys.log(taskId), `(${after}-0`, '+')
        .exec()) as [[null, Fields], [null, [string, string[]][]]]
      return { found: toTask(taskId, record[1]), events: toEvents(log[1]) }
    },

    events: async (taskId: string, after: number) => toEvents(await redis.xrange(keys.log(taskId), `(${after}-0`, '+')),

    accept: (
      instanceId: string | undefined,
      of: { record: string; summary: string; createdAt: number; bytes: number; key: string },
      most: { queue: number; bytes: number },
    ) =>
      run(scripts.ACCEPT, {
        asked: instanceId ?? '',
        ...of,
        maxQueue: most.queue,
        maxBytes: most.bytes,
      }) as Promise<[code: string, taskId: string, instanceId: string, position: number]>,

    confirm: async (taskId: string): Promise<boolean> => (await run(scripts.CONFIRM, { task: taskId })) === 1,

    abandon: async (taskId: string, leastAgeMs = 0): Promise<boolean> =>
      (await run(scripts.ABANDON, { task: taskId, leastAgeMs })) === 1,

    /** @param queue the prefix of BullMQ's keys of the queue */
    begin: (taskId: string, queue: string, token: string, epoch: number, at: number) =>
      run(scripts.BEGIN, { id: taskId, queue, token, epoch, at }) as Promise<Beginning>,

    /** @param queue the prefix of BullMQ's keys of the queue */
    record: (taskId: string, queue: string, token: string, write: TaskWrite) => {
      const { isEnd, bytes, dropped } = write
      const fields = flat(write.fields)
      const events = write.events.flatMap(({ seq, json }) => [seq, json])
      const args = {
        id: taskId,
        queue,
        token,
        isEnd: isEnd ? 1 : 0,
        logMs: LOG_MS,
        maxRetained: limits.maxRetained,
        bytes,
        fieldParts: fields.length,
        drops: dropped.length,
      }
      return run(scripts.RECORD, args, [...fields, ...dropped, ...events]) as Promise<'ok' | 'over' | 'stale'>
    },

    endQueued: async (taskId: string, message: string, fields: Fields): Promise<boolean> =>
      (await run(
        scripts.END_QUEUED,
        { id: taskId, logMs: LOG_MS, maxRetained: limits.maxRetained, message },
        flat(fields),
      )) === 1,

    askCancel: async (taskId: string, why: string): Promise<boolean> =>
      (await run(scripts.ASK_CANCEL, { task: taskId, reason: why })) === 1,

    /** Returns the epoch for a new connection. Each epoch is greater than all earlier ones, so that a script recognizes an outdated connection. */
    nextEpoch: () => redis.incr(`${keys.own}epoch`),

    /**
     * Makes a node the owner of an instance. Resolves with the epoch on success. Otherwise resolves with the node that owns the instance, or owned it
     * last.
     */
    claim: async (instanceId: string, node: string, epoch: number, isForced: boolean, at: number, fields: Fields) => {
      const args = { inst: instanceId, node, epoch, force: isForced ? 1 : 0, at }
      const [isClaimed, holder] = (await run(scripts.CLAIM, args, flat(fields))) as [number, string]
      return isClaimed === 1 ? { epoch } : { holder }
    },

    describe: (instanceId: string, epoch: number, tools: string) =>
      run(scripts.DESCRIBE, { inst: instanceId, epoch, tools }),

    instance: (instanceId: string): Promise<Fields> => redis.hgetall(`${keys.own}inst:${instanceId}`),

    instances: async (): Promise<ListedInstance[]> => {
      const ids = await redis.zrange(`${keys.own}instances`, 0, -1)
      const reads = redis.pipeline()
      for (const id of ids) {
        const fields = ['kind', 'node', 'tools', 'connectedAt', 'port', 'userAgent']
        reads.hmget(`${keys.own}inst:${id}`, ...fields).zcard(`${keys.own}live:${id}`)
      }
      const answers = ((await reads.exec()) ?? []).map(([, answer]) => answer)
      const rows = ids.map((id, index) => {
        const [kind, node, tools, connectedAt, port, userAgent] = answers[2 * index] as (string | null)[]
        return {
          id,
          kind: kind ?? 'local',
          node: node ?? '',
          tools: tools ?? undefined,
          ...(isGiven(connectedAt) && { connectedAt: Number(connectedAt) }),
          ...(isGiven(port) && { port: Number(port) }),
          ...(isGiven(userAgent) && { userAgent }),
          queued: Number(answers[2 * index + 1]),
        }
      })
      const nodes = [...new Set(rows.map(({ node }) => node).filter((node) => node !== ''))]
      const alive = new Set<string>()
      for (const node of nodes) if ((await redis.exists(`${keys.own}node:${node}`)) === 1) alive.add(node)
      return rows.map(({ node, ...row }) => ({ ...row, isConnected: alive.has(node) }))
    },

    /** Reads summaries of tasks that were submitted before the task with the number `before`, newest first. */
    page: async (instanceId: string | undefined, before: number, count: number) => {
      const set = instanceId === undefined ? `${keys.own}tasks` : `${keys.own}of:${instanceId}`
      const most = before === Infinity ? '+inf' : `(${before}`
      const found = await redis.zrevrangebyscore(set, most, '-inf', 'WITHSCORES', 'LIMIT', 0, count)
      const ids = found.filter((_, index) => index % 2 === 0)
      const reads = redis.pipeline()
      for (const id of ids) reads.hmget(keys.task(id), ...SUMMARY_FIELDS)
      const answers = (await reads.exec()) ?? []
      return ids.map((id, index) => ({
        place: Number(found[2 * index + 1]),
        summary: toSummary(id, (answers[index]?.[1] ?? []) as (string | null)[]),
      }))
    },

    /** Reads a value that all nodes share. If no node has stored it yet, stores `value`. */
    shared: async (name: string, value: string): Promise<string> => {
      await redis.set(`${keys.own}${name}`, value, 'NX')
      return (await redis.get(`${keys.own}${name}`)) ?? value
    },

    /** Stores the limits of the servers, so that hosts can read them. The server that starts last determines them. */
    setLimits: ({ maxQueueSize, maxTaskBytes, maxBytes, maxRetained }: TaskLimits) =>
      redis.set(`${keys.own}limits`, JSON.stringify({ maxQueueSize, maxTaskBytes, maxBytes, maxRetained })),

    /** Reads the limits of the servers. Resolves with undefined if no server has ever started. */
    limits: async (): Promise<TaskLimits | undefined> => {
      const json = await redis.get(`${keys.own}limits`)
      return json === null ? undefined : (JSON.parse(json) as TaskLimits)
    },

    lose: (instanceId: string, node: string, epoch: number) => run(scripts.LOSE, { inst: instanceId, node, epoch }),

    register: (instanceId: string, secret: string, registration: string, graceMs: number, most: number) =>
      run(scripts.REGISTER, { inst: instanceId, secret, registration, graceMs, most }) as Promise<
        'OK' | 'IN_USE' | 'AWAITED' | number
      >,

    renew: (
      node: string,
      lifeMs: number,
      instances: readonly { readonly id: string; readonly epoch: number }[],
      runs: readonly { readonly taskId: string; readonly queue: string; readonly token: string }[],
    ) =>
      run(scripts.RENEW, { node, life: lifeMs, instances: instances.length }, [
        ...instances.flatMap(({ id, epoch }) => [id, epoch, keys.queueKey(id)]),
        ...runs.flatMap(({ taskId, queue, token }) => [taskId, queue, token]),
      ]) as Promise<string[]>,

    leave: (node: string) => run(scripts.LEAVE, { node }),

    /** @param againMs for how long the surveys of other nodes return nothing, in ms; with 0, this survey runs even if another one ran just before */
    survey: async (graceMs: number, joinMs: number, retentionMs: number, againMs = 0): Promise<Stray[]> => {
      const args = { prefix: keys.prefix, graceMs, joinMs, retentionMs, againMs }
      const found = (await run(scripts.SURVEY, args)) as string[]
      return Array.from({ length: found.length / 3 }, (_, index) => ({
        kind: found[3 * index] as Stray['kind'],
        instanceId: found[3 * index + 1] ?? '',
        ids: (found[3 * index + 2] ?? '').split(' '),
      }))
    },

    /** Takes the expired lock of a job whose node is dead. */
    seize: async (instanceId: string, jobId: string, token: string, lifeMs: number): Promise<boolean> =>
      (await runScript(redis, scripts.SEIZE, {}, { queue: keys.queueKey(instanceId), id: jobId, token, lifeMs })) === 1,

    /** Takes the lock of a running job from an earlier connection of the same instance. */
    seizeFromEarlier: async (instanceId: string, jobId: string, token: string, lifeMs: number, epoch: number) => {
      const args = { queue: keys.queueKey(instanceId), id: jobId, token, lifeMs, inst: instanceId, epoch }
      return (await run(scripts.SEIZE_FROM_EARLIER, args)) === 1
    },

    announceWork: (instanceId: string) => run(scripts.ANNOUNCE_WORK, { inst: instanceId }),
  }
}

export interface KeptEvent {
  readonly seq: number
  readonly json: string
}

export const toEvents = (entries: readonly [id: string, fields: string[]][]): KeptEvent[] =>
  entries.map(([id, fields]) => ({ seq: Number.parseInt(id, 10), json: fields[1] ?? '' }))

const isGiven = (field: string | null | undefined): field is string =>
  field !== null && field !== undefined && field !== ''
