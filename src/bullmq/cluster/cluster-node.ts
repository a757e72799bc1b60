/**
 * One server (node) of a cluster. It claims the instances that are connected to it, runs their tasks, and cleans up after dead nodes (promises N1 and
 * N4).
 */
import { randomUUID, timingSafeEqual } from 'node:crypto'
import type { Redis } from 'ioredis'
import { clearLongTimeout, setLongTimeout, withTimeLimit, type Clock, type LongTimer } from '../../system/clock.js'
import type { TaskManager } from '../../command-tasks/task-manager.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { InstanceError } from '../../errors.js'
import type { Log } from '../../server/http/log.js'
import { toJson } from '../../server/http/json.js'
import {
  RESTARTED_WORKER,
  type InstanceEntry,
  type InstanceManager,
} from '../../command-tasks/instances/instance-manager.js'
import { createSecret, digestOf } from '../../command-tasks/instances/websocket-instance.js'
import { restoreWorker } from '../../command-tasks/instances/worker-socket.js'
import { preview } from '../../data/preview.js'
import type { RegisterRequest, RegisterResponse } from '../../protocol/instance-messages.js'
import { toPlainData } from '../../data/plain-data.js'
import type { InstanceSummary } from '../../protocol/rest.js'
import type { ServerConfig } from '../../protocol/server-config.js'
import { eventWithInlineResults } from '../../server/backend/inline-results.js'
import { settledWithin } from '../../server/backend/shutdown.js'
import type { WorkerRegistration } from '../../server/backend/task-backend.js'
import { MAX_WAITING_WORKERS, tooMany } from '../../server/backend/worker-store.js'
import { failureLog, type LogFailure } from '../failure-log.js'
import { lockTimes } from '../queue-settings.js'
import type { ClusterKeys } from './cluster-keys.js'
import type { ClusterRedis, Stray } from './cluster-redis.js'
import { InstanceLane, settleStray } from './instance-lane.js'
import { createInstanceQueue, type InstanceQueue } from './instance-queue.js'
import { listInstances } from './listed-instances.js'
import { endFields, endTask } from './task-fields.js'
import type { TaskRun } from './task-run.js'

export interface ClusterNodeOptions {
  readonly connection: Redis
  readonly redis: ClusterRedis
  readonly keys: ClusterKeys
  readonly tasks: TaskManager
  readonly instances: InstanceManager
  readonly limits: ServerConfig['tasks']
  readonly clock: Clock
  readonly log: Log
  /** How long after this node's death its running commands fail, in ms. */
  readonly lockMs: number
}

/** How long a submission may stay unconfirmed, in ms. After that the task is dropped and never runs. */
const JOIN_MS = 10_000
/**
 * How long a connecting worker waits until the node has claimed its instance in Redis, in ms. The worker is accepted even if Redis does not answer in
 * time.
 */
const ANNOUNCE_MS = 1000
/** How long a newly connected instance may take to list its tools, in ms. */
const TOOLS_MS = 10_000

export class ClusterNode {
  readonly id = randomUUID()
  readonly #options: ClusterNodeOptions
  /** How long a job lock and a heartbeat last, in ms. */
  readonly #lifeMs: number
  readonly #tickMs: number
  readonly #queues = new Map<string, InstanceQueue>()
  /** The lanes of the instances that are connected to this node. A lane runs the tasks of one instance. */
  readonly #lanes = new Map<string, InstanceLane>()
  /** Lanes whose instance has disconnected, while the end of their last task is still being written. */
  readonly #closing = new Set<InstanceLane>()
  readonly #pending = new Set<Promise<unknown>>()
  /** The claims of newly connected instances that Redis has not answered yet. */
  readonly #connecting = new Map<string, Promise<unknown>>()
  readonly #stopListening: readonly (() => void)[]
  readonly #logFailure: LogFailure
  #timer: LongTimer | undefined
  #isTicking = false
  #isHeld = false
  #isClosed = false

  constructor(options: ClusterNodeOptions) {
    this.#options = options
    this.#logFailure = failureLog((line) => options.log('error', line))
    const { lockDuration, stalledInterval } = lockTimes(options.lockMs)
    this.#lifeMs = lockDuration
    this.#tickMs = stalledInterval
    const { instances } = options
    this.#stopListening = [
      // A worker has sent its secret before this event, so its instance is claimed without another check.
      instances.onConnect((id) => this.#connected(id)),
      instances.onDisconnect((id) => void this.#track(this.#release(id))),
    ]
  }

  /** Sends the first heartbeat and starts the timer for the next ones. */
  async start(): Promise<void> {
    await this.#options.redis.renew(this.id, this.#lifeMs, [], [])
    this.#plan()
  }

  queueOf(instanceId: string): InstanceQueue {
    let queue = this.#queues.get(instanceId)
    if (queue === undefined) {
      const { connection, keys, log } = this.#options
      queue = createInstanceQueue(keys.queue(instanceId), {
        redis: connection,
        prefix: keys.prefix,
        lockMs: this.#lifeMs,
        onError: (error) => log('debug', `queue of instance ${instanceId}`, error),
      })
      this.#queues.set(instanceId, queue)
    }
    return queue
  }

  /** Fetches the next task of an instance, if the instance is connected to this node. */
  wake(instanceId: string): void {
    this.#lanes.get(instanceId)?.wake()
  }

  /** Cancels a task if it runs on this node. */
  cancel(taskId: string, why: string): void {
    const run = this.#runs().find((one) => one.taskId === taskId)
    if (run !== undefined) this.#options.tasks.cancelTask(taskId, why === '' ? undefined : why)
  }

  /** Handles the event that a node has claimed or lost an instance. If another node now has an instance of this node, checks the heartbeat at once. */
  noteInstance(instanceId: string, node: string): void {
    if (this.#lanes.has(instanceId) && node !== this.id) void this.#tick()
  }

  /** Closes the queue of an instance that was deleted in Redis, because it has no connection and no tasks. */
  forget(instanceId: string): void {
    if (this.#lanes.has(instanceId)) return
    const queue = this.#queues.get(instanceId)
    this.#queues.delete(instanceId)
    void queue?.close().catch(() => undefined)
  }

  list(): Promise<InstanceSummary[]> {
    return listInstances(this.#options.redis)
  }

  async register(request: RegisterRequest, { websocketUrl, isBrowser }: WorkerRegistration): Promise<RegisterResponse> {
    const { redis, limits } = this.#options
    const { instanceId = `worker_${randomUUID()}`, tools } = request
    if (request.secret !== undefined && isDigestOf(request.secret, (await redis.instance(instanceId))['secret'])) {
      return { instanceId, secret: request.secret, websocketUrl }
    }
    const secret = createSecret()
    const registration = toJson({ ...omitUndefined({ tools }), isBrowser })
    const digest = digestOf(secret).toString('hex')
    const answer = await redis.register(instanceId, digest, registration, limits.instanceGraceMs, MAX_WAITING_WORKERS)
    if (answer === 'OK') return { instanceId, secret, websocketUrl }
    if (typeof answer === 'number') throw tooMany(`${answer} registered workers are not connected`)
    const why =
      answer === 'AWAITED'
        ? 'tasks wait for the worker that used it before'
        : 'a worker with this id is connected, or is about to connect'
    const message = `Instance id ${preview(instanceId)} is in use: ${why}. ${RESTARTED_WORKER}`
    throw new InstanceError('INSTANCE_ID_IN_USE', instanceId, message)
  }

  /**
   * Restores the registration of a worker that reconnects to this node. Redis has the registration, because the worker may have been connected to
   * another node.
   */
  async find(instanceId: string, secret: string): Promise<void> {
    // This node is shutting down. The worker tries again, and the load balancer sends it to another node.
    if (this.#isHeld) throw new Error('This node is shutting down and accepts no workers.')
    const { redis, instances, clock, limits } = this.#options
    const { secret: digest, registration, epoch } = await redis.instance(instanceId)
    if (digest === undefined || !isDigestOf(secret, digest)) return
    if (instances.get(instanceId) !== undefined) {
      if (this.#lanes.get(instanceId)?.epoch === Number(epoch)) return
      // The worker has been connected to another node in the meantime, so the old connection to this node is obsolete.
      await instances.disconnect(instanceId, 'The worker has connected to another node since.')
    }
    const worker = { id: instanceId, secretSha256: digest, registration: toRegistration(registration) }
    restoreWorker(instances, worker, {
      clock,
      cancelGraceMs: limits.abortGraceMs,
      connectTimeoutMs: limits.instanceGraceMs,
    })
  }

  /** Resolves when the other nodes know that the instance is connected here, or after `ANNOUNCE_MS`. */
  async announced(instanceId: string): Promise<void> {
    const claim = this.#connecting.get(instanceId)
    if (claim !== undefined) await settledWithin(claim, this.#options.clock, ANNOUNCE_MS)
  }

  /**
   * Starts no further tasks. Resolves when no task runs on this node. Tasks that still run after `drainMs` end as after the death of the node (promise
   * K13).
   */
  async drain(drainMs: number): Promise<void> {
    const { clock } = this.#options
    this.#isHeld = true
    const lanes = [...this.#lanes.values(), ...this.#closing]
    for (const lane of lanes) lane.hold()
    const idle = Promise.all(lanes.map((lane) => lane.idle))
    if (drainMs > 0) await settledWithin(idle, clock, drainMs)
    for (const lane of lanes) lane.interrupt()
    // Gives the node time to write how its tasks ended. If Redis cannot be reached, other nodes settle these tasks later.
    await settledWithin(idle, clock, this.#lifeMs)
  }

  /** Leaves the cluster. Other nodes then settle the remaining tasks of this node. */
  async close(): Promise<void> {
    const { clock, redis } = this.#options
    this.#isHeld = true
    this.#isClosed = true
    this.#stopListening.forEach((stop) => stop())
    clearLongTimeout(clock, this.#timer)
    for (const lane of this.#lanes.values()) lane.close()
    const left = (async () => {
      await Promise.allSettled(this.#pending)
      await redis.leave(this.id)
      await Promise.allSettled(Array.from(this.#queues.values(), (queue) => queue.close()))
    })()
    await settledWithin(left, clock, CLOSE_MS)
  }

  #connected(instanceId: string): void {
    const claim = this.#track(this.#claim(instanceId, this.#options.instances.get(instanceId)?.kind === 'websocket'))
    this.#connecting.set(instanceId, claim)
    void claim.then(() => {
      if (this.#connecting.get(instanceId) === claim) this.#connecting.delete(instanceId)
    })
  }

  #track(change: Promise<unknown>): Promise<unknown> {
    const done = change
      .catch((error: unknown) =>
        this.#options.log('error', 'The state of an instance could not be written to Redis', error),
      )
      .finally(() => this.#pending.delete(done))
    this.#pending.add(done)
    return done
  }

  #runs(): TaskRun[] {
    return [...this.#lanes.values(), ...this.#closing].flatMap(({ run }) => run ?? [])
  }

  /**
   * Claims the instance for this node. With `isTaken`, the node takes the instance over from another node. Without it, an instance of a live node
   * stays there.
   */
  async #claim(instanceId: string, isTaken: boolean): Promise<void> {
    const { redis, keys, instances, tasks, clock, log } = this.#options
    const entry = instances.get(instanceId)
    if (entry === undefined || !this.#mayHave(entry)) return
    const { kind, instance } = entry
    // Redis may take long to answer. Meanwhile the instance may disconnect from this node, so the check is repeated.
    const epoch = await redis.nextEpoch()
    if (!this.#mayHave(entry)) return
    // If the instance sent no port or user agent, empty values overwrite those of its earlier connection.
    const { port, userAgent = '' } = instance.peer ?? {}
    const claimed = await redis.claim(instanceId, this.id, epoch, isTaken, clock.now(), {
      kind,
      userAgent,
      port: port === undefined ? '' : String(port),
    })
    if (!this.#mayHave(entry)) {
      if ('epoch' in claimed) await redis.lose(instanceId, this.id, claimed.epoch)
      return
    }
    if ('holder' in claimed) {
      log('debug', `instance ${instanceId} belongs to node ${claimed.holder}; this node waits until it is released`)
      return
    }
    this.#retire(instanceId)
    const lane = new InstanceLane({
      instanceId,
      epoch: claimed.epoch,
      node: this.id,
      redis,
      tasks,
      instances,
      queue: this.queueOf(instanceId),
      queueKey: keys.queueKey(instanceId),
      lockMs: this.#lifeMs,
      now: () => clock.now(),
      logFailure: this.#logFailure,
    })
    this.#lanes.set(instanceId, lane)
    try {
      await lane.open()
    } catch (error) {
      // The next heartbeat claims the instance again.
      if (this.#lanes.get(instanceId) === lane) this.#retire(instanceId)
      throw error
    }
    const listed = (async () => instance.listTools())().catch(() => undefined)
    const tools = await withTimeLimit(listed, { clock, ms: TOOLS_MS, late: () => undefined })
    if (tools !== undefined) await redis.describe(instanceId, claimed.epoch, toJson(toPlainData(tools)))
  }

  /** Whether this node may claim the instance: the instance is connected to this node, and the node is not shutting down. */
  #mayHave(entry: InstanceEntry): boolean {
    return this.#options.instances.get(entry.id) === entry && entry.isConnected && !this.#isHeld
  }

  async #release(instanceId: string): Promise<void> {
    const lane = this.#retire(instanceId)
    if (lane !== undefined) await this.#options.redis.lose(instanceId, this.id, lane.epoch)
  }

  /** Ends the lane of a disconnected instance. The end of its last task is still written. */
  #retire(instanceId: string): InstanceLane | undefined {
    const lane = this.#lanes.get(instanceId)
    if (lane === undefined) return undefined
    lane.close()
    this.#lanes.delete(instanceId)
    this.#closing.add(lane)
    void lane.idle.finally(() => this.#closing.delete(lane))
    return lane
  }

  #plan(): void {
    if (this.#isClosed) return
    this.#timer = setLongTimeout(this.#options.clock, () => void this.#tick().finally(() => this.#plan()), this.#tickMs)
  }

  async #tick(): Promise<void> {
    if (this.#isTicking || this.#isClosed) return
    this.#isTicking = true
    try {
      await this.#renew()
      await this.#sweep()
      await this.#standBy()
    } catch (error) {
      this.#logFailure('heartbeat', 'The heartbeat of this node cannot be written to Redis', error)
    } finally {
      this.#isTicking = false
    }
  }

  async #renew(): Promise<void> {
    const { redis, instances } = this.#options
    const lanes = [...this.#lanes.values()]
    const runs = this.#runs()
    const held = lanes.map(({ instanceId: id, epoch }) => ({ id, epoch }))
    const answers = await redis.renew(this.id, this.#lifeMs, held, runs)
    for (const [index, lane] of lanes.entries()) {
      // This node may have missed the event about new work.
      if (answers[index] === 'work') lane.wake()
      if (['ok', 'work'].includes(answers[index] ?? '') || this.#lanes.get(lane.instanceId) !== lane) continue
      this.#retire(lane.instanceId)
      const { instanceId } = lane
      // This node has lost the instance, because its heartbeat was late. If no other node owns the instance now, this node claims it again. Otherwise
      // this node closes its own connection to the instance.
      const isFree = answers[index] === 'lost'
      void this.#track(
        isFree
          ? this.#claim(instanceId, false)
          : instances.disconnect(instanceId, 'The instance is connected to another node now.'),
      )
    }
    for (const [index, run] of runs.entries()) {
      const answer = answers[lanes.length + index] ?? 'ok'
      if (answer === 'lost') run.lose()
      else if (answer.startsWith('+')) this.cancel(run.taskId, answer.slice(1))
    }
  }

  /** Claims instances that are connected to this node, but belonged to another node until now. */
  async #standBy(): Promise<void> {
    const { instances } = this.#options
    for (const { id, isConnected } of instances.list()) {
      if (isConnected && !this.#lanes.has(id) && this.#pending.size === 0) await this.#claim(id, false)
    }
  }

  async #sweep(): Promise<void> {
    const { redis, limits } = this.#options
    // Only one node surveys at a time: the other nodes skip their surveys for half an interval. If the surveying node dies, another one surveys next.
    const againMs = Math.floor(this.#tickMs / 2)
    for (const stray of await redis.survey(limits.instanceGraceMs, JOIN_MS, limits.retentionMs, againMs)) {
      if (stray.kind === 'stalled') await this.#settleStalled(stray)
      else if (stray.kind === 'awaited') await this.#failWaiting(stray)
      else await this.#settleJoining(stray)
    }
  }

  async #settleStalled({ instanceId, ids: [jobId = ''] }: Stray): Promise<void> {
    const { redis, keys, clock } = this.#options
    const token = `${this.id}:sweep`
    if (!(await redis.seize(instanceId, jobId, token, this.#lifeMs))) return
    const job = await this.queueOf(instanceId).job(jobId)
    const options = { redis, queueKey: keys.queueKey(instanceId), now: () => clock.now(), instanceId }
    if (job !== undefined) {
      await settleStray(
        job,
        options,
        token,
        'the server that it was connected to has stopped, or lost its connection to Redis',
      )
    }
  }

  async #failWaiting({ instanceId, ids }: Stray): Promise<void> {
    const { redis, clock, limits } = this.#options
    const queue = this.queueOf(instanceId)
    for (const id of ids) {
      const found = await redis.read(id)
      if (found?.task.status !== 'queued') continue
      const why = `Instance ${instanceId} did not come back within ${limits.instanceGraceMs} ms`
      const { task, message } = endTask(found, (ended) => ended.lose(why), clock.now())
      const hasEnded = await redis.endQueued(id, toJson(eventWithInlineResults(message)), endFields(task))
      if (hasEnded) await queue.remove(id).catch(() => undefined)
    }
  }

  /**
   * Drops submissions that were never confirmed, because the node that accepted them died. The client received no answer. If the job exists, it finds
   * no task and ends.
   */
  async #settleJoining({ ids }: Stray): Promise<void> {
    for (const id of ids) await this.#options.redis.abandon(id, JOIN_MS)
  }
}

/** How long `close` waits for Redis, in ms. */
const CLOSE_MS = 2000

const isDigestOf = (secret: string, digest: string | undefined): boolean =>
  digest !== undefined && timingSafeEqual(digestOf(secret), Buffer.from(digest, 'hex'))

const toRegistration = (json: string | undefined): Record<string, unknown> =>
  json === undefined ? {} : (JSON.parse(json) as Record<string, unknown>)
