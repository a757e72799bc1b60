/**
 * One life of an agent host whose tasks wait for others, for keys and for the end of a pause, and which is woken by schedules and monitors. The host
 * knows which messages its agent has read, so that each thing is delivered exactly once.
 */
import fc from 'fast-check'
import { createAgentTasks, type AgentTasks, type AsyncTaskInfo, type Runner } from '../../src/index.js'
import { StoreError, type Store } from '../../src/store/index.js'
import type { Race } from '../../src/testing/index.js'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { hasEnded } from '../../machines/task-status.js'
import type { RetryPolicy } from '../../src/protocol/retry-policy.js'

/** A step of an actor. `nth` picks among what was made before. */
export type WakingStep =
  | { readonly do: 'launch'; readonly key?: number; readonly after?: number; readonly fails?: boolean }
  | { readonly do: 'cancel task' | 'write' | 'monitor' | 'cancel schedule'; readonly nth: number }
  | { readonly do: 'schedule'; readonly seconds: number; readonly launches: boolean }
  | { readonly do: 'pause' | 'resume'; readonly isOwners: boolean }

export interface WakingScript {
  readonly worker: readonly WakingStep[]
  readonly user: readonly WakingStep[]
  readonly maxAsyncTasks: number
}

const nth = fc.nat(1)
const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined })
const launch = fc
  .record({
    do: fc.constant('launch' as const),
    key: optional(fc.constant(0)),
    after: optional(nth),
    fails: optional(fc.constant(true)),
  })
  .map(({ key, after, fails, ...step }): WakingStep => ({
    ...step,
    ...(key !== undefined && { key }),
    ...(after !== undefined && { after }),
    ...(fails !== undefined && { fails }),
  }))
const step: fc.Arbitrary<WakingStep> = fc.oneof(
  { weight: 5, arbitrary: launch },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('write' as const), nth }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('monitor' as const), nth }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('cancel task' as const, 'cancel schedule' as const), nth }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('schedule' as const),
      seconds: fc.constantFrom(10, 20),
      launches: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('pause' as const, 'resume' as const), isOwners: fc.boolean() }),
  },
)

/** Any script. */
export const wakingScripts: fc.Arbitrary<WakingScript> = fc.record({
  worker: fc.array(step, { minLength: 1, maxLength: 5 }),
  user: fc.array(step, { maxLength: 3 }),
  maxAsyncTasks: fc.constantFrom(-1, 1),
})

/** What was made, in all lives. */
interface Made {
  /** It is on the disk: the call was followed by a write. */
  isStored: boolean
  isCancelled: boolean
  /** How often the agent has read of it. */
  told: number
}

interface MadeTask extends Made {
  readonly key: number | undefined
  readonly after: readonly string[]
  /** Read by the agent, as what. */
  status: AsyncTaskInfo['status'] | undefined
}

/** What survives a crash besides the store. */
export interface Disk {
  readonly tasks: Record<string, MadeTask>
  readonly schedules: Record<string, Made & { readonly launches: boolean }>
  /** By their descriptions. */
  readonly monitors: Record<string, Made & { isOver: boolean }>
  /** The owners whose pauses are stored; '' for that of all. */
  readonly paused: Record<string, boolean>
  readonly transcript: string[]
  readonly problems: string[]
  names: number
}

export const emptyDisk = (): Disk => ({
  tasks: {},
  schedules: {},
  monitors: {},
  paused: {},
  transcript: [],
  problems: [],
  names: 0,
})

/** How to break a host. */
export interface WakingSabotage {
  readonly wrapStore?: (store: Store) => Store
  readonly breakManager?: (manager: AsyncTaskManager) => void
}

const RETRY: RetryPolicy = {
  attempts: 3,
  on: ['rate-limited', 'interrupted'],
  backoff: { initialMs: 1000, jitter: false },
}

export class WakingWorld {
  readonly tasks: AgentTasks
  readonly #race: Race<Disk>
  /** The ids of the tasks whose runs go on, by key. */
  readonly #running = new Map<number, string>()
  /** What is paused: since which change of the registry. */
  readonly #paused = new Map<string, number>()

  constructor(race: Race<Disk>, { maxAsyncTasks }: WakingScript, { wrapStore, breakManager }: WakingSabotage) {
    this.#race = race
    const { clock, store, life, disk } = race
    let names = 0
    this.tasks = createAgentTasks({
      store: wrapStore?.(store) ?? store,
      clock,
      maxAsyncTasks,
      whenFull: 'queue',
      createId: (prefix) => `${prefix}-${life}-${(names += 1)}`,
      onError: (error, { source }) => {
        if (source !== 'late-result') this.#problem(`${source} reported ${String(error)}`)
      },
      turnTimeoutMs: Infinity,
      findRunner: () => ({ run: this.#run, retry: RETRY }),
      isAgentBusy: () => false,
      triggerAgentTurn: (_, { deliveryId, taskIds }) => this.#read(deliveryId, taskIds),
      wasDelivered: (id) => disk.transcript.includes(id),
    })
    breakManager?.(this.manager)
    for (const [owner, isPaused] of Object.entries(disk.paused)) if (isPaused) this.#paused.set(owner, 0)
    for (const { owner } of this.manager.pauses()) this.#resumeLater(owner)
    this.manager.transitions$.subscribe(({ kind, record, seq }) => {
      if (kind === 'status' && record.status === 'running' && record.isNote !== true) this.#onStart(record, seq)
    })
  }

  get manager(): AsyncTaskManager {
    return this.tasks.manager
  }

  get problem(): string | undefined {
    return this.#race.disk.problems[0]
  }

  #problem(text: string): void {
    this.#race.disk.problems.push(text)
  }

  take(step: WakingStep): unknown {
    const { manager } = this
    const { disk } = this.#race
    switch (step.do) {
      case 'launch':
        return this.#launch(step)
      case 'cancel task': {
        const id = Object.keys(disk.tasks)[step.nth] ?? ''
        const isCancelled = manager.cancelTask(id)
        if (isCancelled && disk.tasks[id] !== undefined) disk.tasks[id].isCancelled = true
        return isCancelled
      }
      case 'write':
        return manager.appendOutput(Object.keys(disk.tasks)[step.nth] ?? '', 'ready\n')
      case 'monitor':
        return this.#monitor(Object.keys(disk.tasks)[step.nth] ?? '')
      case 'schedule':
        return this.#schedule(step)
      case 'cancel schedule': {
        const id = Object.keys(disk.schedules)[step.nth] ?? ''
        const schedule = disk.schedules[id]
        if (schedule === undefined) return 'none'
        schedule.isCancelled = true
        return manager.cancelSchedule(id)
      }
      case 'pause': {
        const owner = step.isOwners ? 'main' : undefined
        manager.pause(owner)
        if (!this.#paused.has(owner ?? '')) this.#paused.set(owner ?? '', manager.registry.seq)
        this.#resumeLater(owner)
        return this.#pauseStored(owner ?? '')
      }
      case 'resume':
        this.#resume(step.isOwners ? 'main' : undefined)
    }
    return undefined
  }

  async #pauseStored(owner: string): Promise<void> {
    await this.manager.stored()
    if (this.#paused.has(owner)) this.#race.disk.paused[owner] = true
  }

  /** A person resumes it at last: what waits would not end. */
  #resumeLater(owner: string | undefined): void {
    this.#race.clock.setTimeout(() => this.#resume(owner), 5000, { name: 'a person resumes' })
  }

  #resume(owner: string | undefined): void {
    this.#paused.delete(owner ?? '')
    this.#race.disk.paused[owner ?? ''] = false
    this.manager.resume(owner)
  }

  async #launch({ key, after, fails = false }: WakingStep & { readonly do: 'launch' }): Promise<string> {
    const { disk } = this.#race
    const named = Object.keys(disk.tasks)[after ?? -1]
    const isKept = named !== undefined && this.manager.getTask(named) !== undefined
    const id = `task-${(disk.names += 1)}`
    const made: MadeTask = {
      key,
      after: isKept ? [named] : [],
      status: undefined,
      isStored: false,
      isCancelled: false,
      told: 0,
    }
    disk.tasks[id] = made
    this.manager.launch(
      {
        id,
        subagentName: 'agent',
        goalPrompt: fails ? 'fail' : 'work',
        after: made.after,
        onFailedDependency: 'run',
        ...(key !== undefined && { concurrencyKey: `key-${key}` }),
      },
      { run: this.#run, retry: RETRY },
    )
    await this.#stored(made)
    return id
  }

  async #schedule({ seconds, launches }: WakingStep & { readonly do: 'schedule' }): Promise<string> {
    const { disk } = this.#race
    const wake = launches ? { launch: { subagent: 'agent', goal: 'scheduled' } } : { message: 'wake' }
    const { id } = this.manager.schedule({ in: seconds * 1000, ...wake })
    const made = { isStored: false, isCancelled: false, told: 0, launches }
    disk.schedules[id] = made
    await this.#stored(made)
    return id
  }

  async #monitor(taskId: string): Promise<string> {
    const { disk } = this.#race
    if (hasEnded(this.manager.getTask(taskId)?.status ?? 'completed')) return 'no task'
    const description = `watch-${(disk.names += 1)}`
    const made = { isStored: false, isCancelled: false, told: 0, isOver: false }
    disk.monitors[description] = made
    this.manager.monitor({ taskId }, { match: 'ready', maxEvents: 2, description })
    await this.#stored(made)
    return description
  }

  async #stored(made: Made): Promise<void> {
    try {
      await this.manager.stored()
      made.isStored = true
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
    }
  }

  readonly #run: Runner = async ({ id, goal }, { attempt, signal }) => {
    const key = this.#race.disk.tasks[id]?.key
    if (key !== undefined) {
      const other = this.#running.get(key)
      if (other !== undefined) this.#problem(`two runs have key ${key} at the same time: ${other} and ${id}`)
      this.#running.set(key, id)
      // A run that is cancelled and does not stop loses its key when its grace has passed.
      signal.addEventListener('abort', () => this.#leave(key, id), { once: true })
    }
    try {
      await this.#race.pause(`attempt ${attempt} of ${id}`)
      if (goal === 'fail' && attempt === 1) throw Object.assign(new Error('no luck'), { code: 'RATE_LIMITED' })
      return { final_message: id }
    } finally {
      if (key !== undefined) this.#leave(key, id)
    }
  }

  #leave(key: number, id: string): void {
    if (this.#running.get(key) === id) this.#running.delete(key)
  }

  #onStart({ id, owner, after = [] }: AsyncTaskInfo, seq: number): void {
    for (const paused of ['', owner]) {
      const since = this.#paused.get(paused)
      if (since !== undefined && seq > since) this.#problem(`${id} has started (${seq}) while it was paused (${since})`)
    }
    for (const named of after) {
      const status = this.manager.getTask(named)?.status
      if (status !== undefined && !hasEnded(status)) this.#problem(`${id} has started while ${named} is ${status}`)
    }
  }

  /** A turn of the agent. Its message is in the transcript before it is accepted. */
  async #read(deliveryId: string, taskIds: readonly string[]): Promise<void> {
    const records = taskIds.flatMap((id) => this.manager.getTask(id) ?? [])
    await this.#race.pause('the agent reads')
    await this.#race.message('the transcript', () => {
      this.#race.disk.transcript.push(deliveryId)
      for (const record of records) this.#tell(record)
    })
  }

  #tell(record: AsyncTaskInfo): void {
    const { disk, note } = this.#race
    const { id, isNote, subagentName, goalPrompt, output } = record
    note(`reads of ${id} ${record.status} ${goalPrompt}`)
    if (isNote !== true) {
      const task = disk.tasks[id]
      if (task === undefined) return
      task.status = record.status
      this.#count(task, id)
    } else if (subagentName === 'schedule') {
      const schedule = disk.schedules[goalPrompt]
      // It was written, and the process died before it knew.
      if (schedule !== undefined) this.#count(schedule, goalPrompt)
    } else if (subagentName === 'monitor') {
      const monitor = disk.monitors[goalPrompt]
      if (monitor === undefined) return
      if (monitor.isOver) this.#problem(`${goalPrompt} reports an event after its end`)
      if (String(output?.final_message).includes('The monitor has ended')) {
        monitor.isOver = true
        this.#count(monitor, goalPrompt)
      }
    }
  }

  #count(made: Made, name: string): void {
    made.told += 1
    if (made.told > 1) this.#problem(`${name} was delivered twice`)
  }

  /** Nothing happens any more: everything that was stored has been delivered. */
  conclude(): void {
    const { tasks, schedules, monitors } = this.#race.disk
    for (const [id, { isStored, isCancelled, told }] of Object.entries(tasks)) {
      if (isStored && !isCancelled && told === 0) this.#problem(`the end of ${id} was not delivered`)
    }
    for (const [id, { isStored, isCancelled, told, launches }] of Object.entries(schedules)) {
      if (isStored && !isCancelled && !launches && told === 0) this.#problem(`${id} did not fire`)
    }
    for (const [name, { isStored, isOver }] of Object.entries(monitors)) {
      if (isStored && !isOver) this.#problem(`the end of ${name} was not delivered`)
    }
    if (this.manager.schedules().length > 0) this.#problem('a schedule is left')
  }
}
