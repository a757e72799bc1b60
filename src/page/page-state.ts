/** Everything that the page shows, and what has changed since a version. */
import { Subject } from 'rxjs'
import {
  hasEnded,
  holdsSlot,
  startsOrEndsRun,
  outcomeOf,
  STATUSES,
  TERMINAL_STATUSES,
} from '../../machines/task-status.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import { Deliveries } from './deliveries.js'
import { followAsyncTasks } from './follow-async-tasks.js'
import { followCommandTasks } from './follow-command-tasks.js'
import { Health } from './health.js'
import { hostRows } from './page-features.js'
import { Instances } from './instances.js'
import { Journal } from './journal.js'
import { machineCounts } from './machine-counts.js'
import type { PageEntry } from './page-entry.js'
import { Versions } from './versioned.js'
import type { ChangesEvent, PageTask, PageTaskState, ReadyEvent } from './wire.js'

export interface PageStateOptions {
  readonly manager: AsyncTaskManager | undefined
  readonly taskManager: TaskManager | undefined
  readonly maxTasks: number
  readonly maxBytes: number
  readonly now: () => number
}

/** The maximum size of what the journal keeps of one ended task, in bytes. */
const MAX_TASK_BYTES = 1024 * 1024

/** The minimum time between two requests for an instance's tools, in ms. */
const REFRESH_MS = 10_000

const UNDER_WAY: readonly PageTaskState[] = [...STATUSES.filter(holdsSlot), 'asking', 'wrapping', 'stopping']

/** The changes since a version. The tasks are separate, because they are sent in pieces. */
export interface Changes {
  readonly tasks: readonly PageEntry[]
  readonly rest: Omit<ChangesEvent, 'now' | 'tasks'>
  readonly version: number
}

export class PageState {
  readonly journal: Journal<PageEntry>
  readonly changed$ = new Subject<void>()
  readonly #options: PageStateOptions
  readonly #versions = new Versions()
  readonly #deliveries: Deliveries | undefined
  readonly #instances: Instances | undefined
  readonly #health: Health
  readonly #stop: (() => void)[] = []
  #instancesVersion = 0
  #refreshedAt: number
  #areQueuesChanged = false
  #host: ReadyEvent['host'] = []
  #hostVersion = 0

  constructor(options: PageStateOptions) {
    this.#options = options
    const { manager, taskManager, maxTasks, maxBytes, now } = options
    const notify = (): void => this.changed$.next()
    this.#refreshedAt = now()
    this.journal = new Journal<PageEntry>({
      versions: this.#versions,
      maxTasks,
      maxBytes,
      onForgotten: (entry) => {
        if (entry.kind === 'async') this.#deliveries?.forget(entry.key, entry.record.owner)
      },
    })
    this.#health = new Health(this.#versions, now, () => ({
      running: this.#count(UNDER_WAY),
      queued: this.#count(['queued']),
      owed: this.#deliveries?.owed ?? 0,
    }))
    const maxTaskBytes = Math.min(MAX_TASK_BYTES, Math.floor(maxBytes / 8))
    const shared = { journal: this.journal, maxTaskBytes }
    if (manager !== undefined) {
      const deliveries = new Deliveries(manager, this.#versions, notify)
      this.#deliveries = deliveries
      this.#stop.push(() => deliveries.stop())
      this.#stop.push(
        followAsyncTasks({
          ...shared,
          manager,
          now,
          onTransition: (entry, transition) => {
            deliveries.note(entry.record, transition)
            if (transition?.kind === 'status') {
              const { from, to } = transition
              if (holdsSlot(to) && startsOrEndsRun(from, to)) this.#health.start()
              else if (hasEnded(to)) this.#noteEnd(entry, entry.record.launchedAt, transition.at)
            }
            notify()
          },
          onForgotten: (transition) => {
            deliveries.note(transition.record, transition, false)
            notify()
          },
          onOther: notify,
        }),
      )
    }
    if (taskManager !== undefined) {
      const onInstances = (): void => {
        this.#instancesVersion = this.#versions.next()
        notify()
      }
      const instances = new Instances(taskManager, onInstances)
      this.#instances = instances
      this.#stop.push(() => instances.stop())
      this.#stop.push(
        followCommandTasks({
          ...shared,
          taskManager,
          onChange: (entry, change) => {
            if (change === 'started') this.#health.start()
            if (change === 'ended') {
              const { createdAt, endedAt = createdAt } = entry.row()
              this.#noteEnd(entry, createdAt, endedAt)
            }
            // The page shows the queues of the instances, which progress does not change. All queues are sent together in the next `roll`.
            if (change !== 'progress') this.#areQueuesChanged = true
            notify()
          },
        }),
      )
    }
  }

  stop(): void {
    for (const stop of this.#stop.splice(0)) stop()
    this.changed$.complete()
  }

  get version(): number {
    return this.#versions.last
  }

  /** Requests the tools of the instances again, at most every 10 seconds. */
  refresh(): void {
    const now = this.#options.now()
    if (now - this.#refreshedAt < REFRESH_MS) return
    this.#refreshedAt = now
    this.#instances?.refresh()
  }

  noteMessage(entry: PageEntry, message: string): void {
    const { now } = this.#options
    this.journal.update(entry, { at: now(), event: 'message', detail: message, mark: 'message' })
    this.changed$.next()
  }

  noteAnswer(entry: PageEntry, questionId: string): void {
    this.journal.noteAnsweredOnPage(entry, questionId)
    this.changed$.next()
  }

  /** Lists the pauses, schedules and monitors. If one of them has changed, all of them are sent again. */
  rollHost(): ReadyEvent['host'] {
    const rows = this.#options.manager ? hostRows(this.#options.manager) : []
    if (JSON.stringify(rows) === JSON.stringify(this.#host)) return this.#host
    this.#hostVersion = this.#versions.next()
    this.changed$.next()
    return (this.#host = rows)
  }

  /** Updates what depends on the time. While a page is open, the server calls this each second. */
  roll(): void {
    if (this.#areQueuesChanged) this.#instancesVersion = this.#versions.next()
    this.#areQueuesChanged = false
    this.#health.roll()
    this.rollHost()
  }

  rowOf(entry: PageEntry): PageTask {
    return this.journal.rowOf(entry)
  }

  /** Returns the data of the event `ready`, which ends a snapshot. */
  ready(): ReadyEvent {
    return {
      owners: this.#deliveries?.all() ?? [],
      ownersLeftOut: this.#deliveries?.leftOut ?? 0,
      host: this.rollHost(),
      instances: this.#instances?.list() ?? [],
      machines: this.machines(),
      health: this.#health.all(),
    }
  }

  machines(): ReadyEvent['machines'] {
    const { manager, taskManager } = this.#options
    return machineCounts({ journal: this.journal, manager, taskManager })
  }

  /** Returns the changes since a version; undefined if they are no longer known. */
  since(version: number): Changes | undefined {
    const tasks = this.journal.since(version)
    const owners = this.#deliveries === undefined ? { owners: [], removed: [] } : this.#deliveries.since(version)
    if (tasks === undefined || owners === undefined) return undefined
    const health = this.#health.since(version)
    const areInstancesNew = this.#instancesVersion > version
    return {
      tasks: tasks.tasks,
      version: this.#versions.last,
      rest: {
        ...(tasks.removed.length > 0 && { removed: tasks.removed }),
        ...(owners.owners.length > 0 && { owners: owners.owners }),
        ...(owners.removed.length > 0 && { removedOwners: owners.removed }),
        ...(this.#deliveries && { ownersLeftOut: this.#deliveries.leftOut }),
        ...(this.#hostVersion > version && { host: this.#host }),
        ...(areInstancesNew && { instances: this.#instances?.list() ?? [] }),
        machines: this.machines(),
        ...(health.length > 0 && { health }),
      },
    }
  }

  #count(states: readonly PageTaskState[]): number {
    const [tasks, commands] = [this.journal.counts('async'), this.journal.counts('command')]
    return states.reduce((sum, state) => sum + (tasks.get(state) ?? 0) + (commands.get(state) ?? 0), 0)
  }

  #noteEnd({ state }: PageEntry, createdAt: number, endedAt: number): void {
    const status = TERMINAL_STATUSES.find((each) => each === state)
    // The page shows a task that has failed because of its deadline in a state of its own.
    this.#health.end(status === undefined ? 'failed' : outcomeOf(status), Math.max(0, endedAt - createdAt))
  }
}
