/**
 * Monitors (promise F17). They send an event to an owner when lines match in the output of a task or in a file, and when they end. Each monitor is a
 * row of the store. The row is written together with the event, so that a crash neither loses nor repeats an event.
 */
import { DueTimes } from '../../../machines/due-times.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { hasEnded } from '../../../machines/task-status.js'
import { elapsedMs } from '../../system/clock.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { orderedJson } from '../../data/ordered-json.js'
import { AgentTasksError, DisposedError, InvalidInputError } from '../../errors.js'
import { freshId } from '../../data/ids.js'
import {
  monitorInputSchema,
  monitorLimitTypes,
  storedMonitorSchema,
  type MonitorLimits,
  type MonitorOptions,
  type StoredMonitor,
} from '../../protocol/monitors.js'
import { withDefaults } from '../../protocol/option-checks.js'
import { parseInput } from '../../protocol/parse.js'
import { toOneLine } from '../../data/control-characters.js'
import { formatDuration } from '../../data/duration.js'
import type { StoredJson } from '../../store/store.js'
import { checkOwner, presentOwner } from '../families/families.js'
import type { Feature, FeatureStates } from '../../async-tasks/feature.js'
import { DeadlineTimer } from '../limits/deadline-timer.js'
import { addNote, notes } from '../notes/notes.js'
import { boundLines } from '../output/bounded-text.js'
import { outputOf } from '../output/output-stream.js'
import { takeRows } from '../../async-tasks/recovery/state-rows.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { FollowedFile } from './followed-file.js'
import { Monitor } from './monitor.js'

/** What a monitor reads: the output of an active task, or a file within `monitors.files`. */
export type MonitorSource = { readonly taskId: string } | { readonly file: string }

/** A snapshot of a monitor. */
export interface TaskMonitor {
  /** The id of the monitor, for `monitor_id` of the tool `monitor`. */
  readonly id: string
  /** The owner that receives the events. */
  readonly owner: string
  /** The task whose output the monitor reads. */
  readonly taskId?: string
  /** The file that the monitor reads. */
  readonly file?: string
  /** The text or pattern that the monitor looks for. */
  readonly match: string | readonly string[] | { readonly regex: string; readonly flags?: string | undefined }
  /** The name of the monitor among those of its owner. */
  readonly key?: string
  /** The purpose of the monitor, in words. */
  readonly description?: string
  /** When the monitor ends at the latest, in ms since the epoch. */
  readonly endsAt: number
  /** How many events the monitor has reported. */
  readonly events: number
  /**
   * Ends the monitor. With a reason, the owner receives the end as an event.
   * @returns false if the monitor had already ended
   */
  readonly cancel: (reason?: string) => boolean
}

/** The maximum number of active monitors of all owners together. */
const MAX_MONITORS = 1000

const FEATURE = 'monitors'

export class Monitors implements Feature {
  readonly states: FeatureStates = { feature: FEATURE, restore: (rows) => this.#restore(rows) }
  /** Returns the group of an owner. `maxPerOwner` limits each group. An MCP server groups the sessions of one client. */
  groupOf = (owner: string): string => owner
  #limits: Required<MonitorLimits> = withDefaults<MonitorLimits, typeof monitorLimitTypes>({}, monitorLimitTypes)
  readonly #registry: TaskRegistry
  readonly #monitors = new Map<string, Monitor>()
  readonly #dues = new DueTimes<Monitor>()
  readonly #timer: DeadlineTimer

  constructor(registry: TaskRegistry) {
    this.#registry = registry
    this.#timer = new DeadlineTimer(registry.clock, () => registry.batch(() => this.#tick()))
  }

  setLimits(limits: MonitorLimits): void {
    this.#limits = withDefaults(limits, monitorLimitTypes)
  }

  /**
   * Validates a monitor and returns a function that starts it.
   * @param isOwn whether the monitored task is launched for this monitor, and is cancelled when the monitor ends
   * @throws INVALID_INPUT, DISPOSED, AgentTasksError `MONITOR_LIMIT`
   */
  plan(source: MonitorSource, options: MonitorOptions, isOwn = false): () => TaskMonitor {
    const { clock, createId, history, isDisposed } = this.#registry
    const { files } = this.#limits
    const input = parseInput(monitorInputSchema(this.#limits), { ...options, ...source }, 'input')
    if (isDisposed) throw new DisposedError()
    const { owner, taskId = '', file } = input
    checkOwner(this.#registry, owner, 'input.owner')
    if (file === undefined && !isOwn && history.get(taskId)?.ref === undefined) {
      throw new InvalidInputError('input.taskId', taskId, 'the id of a task that has not ended')
    }
    if (isOwn && input.key !== undefined) {
      throw new InvalidInputError('input.key', input.key, 'none for a monitor of a program')
    }
    const before = this.#ofKey(owner, input.key)
    if (before !== undefined && orderedJson({ ...before.state.input, owner }) === orderedJson(input)) {
      return () => this.#view(before)
    }
    if (before === undefined) {
      this.#checkRoom(owner)
      this.#registry.use(notes).checkRoom(owner, 'MONITOR_LIMIT')
    }
    const id = freshId(createId, 'mon', (taken) => this.#monitors.has(taken))
    const monitor = this.#create(id, { input, startedAt: clock.now(), events: 0, position: 0, isOwn })
    const followed = file === undefined ? undefined : new FollowedFile(file, files)
    return () =>
      this.#registry.batch(() => {
        before?.end()
        this.#begin(monitor, followed ?? history.get(taskId))
        return this.#view(monitor)
      })
  }

  #ofKey(owner: string, key: string | undefined): Monitor | undefined {
    if (key === undefined) return undefined
    return [...this.#monitors.values()].find((each) => each.owner === owner && each.state.input.key === key)
  }

  list(owner?: string): TaskMonitor[] {
    const monitors = [...this.#monitors.values()].filter((monitor) => owner === undefined || monitor.owner === owner)
    return monitors.map((monitor) => this.#view(monitor))
  }

  released(owner: string, heir: string | undefined): void {
    for (const monitor of this.#monitors.values()) {
      if (monitor.owner !== owner || heir === owner) continue
      if (heir !== undefined) {
        monitor.owner = heir
        this.#registry.families.setOwner(heir)
        this.#keep(monitor)
      }
      // Deferred, because ending a monitor may cancel its task, and a task cannot be cancelled inside a transition of the registry.
      else queueMicrotask(() => monitor.end())
    }
  }

  /** Reports the lines that have matched so far, because the process ends. */
  report(): void {
    for (const monitor of [...this.#monitors.values()]) {
      monitor.flush()
      this.#keep(monitor)
    }
  }

  closing(): void {
    for (const monitor of this.#monitors.values()) {
      const status = this.#registry.history.get(monitor.state.input.taskId ?? '')?.record.status
      // The task may have ended without a notification so far, because with a store the end is published only when it is stored.
      if (status !== undefined && hasEnded(status)) monitor.end(`its task has ended (${status})`)
      else monitor.leave()
    }
    this.#timer.set(undefined, () => ({ name: FEATURE }))
  }

  #checkRoom(owner: string): void {
    const { maxPerOwner } = this.#limits
    const group = this.groupOf(owner)
    const count = [...this.#monitors.values()].filter((each) => this.groupOf(each.owner) === group).length
    if (count >= maxPerOwner) {
      throw new AgentTasksError(
        'MONITOR_LIMIT',
        `Max monitors of one owner (${maxPerOwner}, monitors.maxPerOwner) reached. Cancel one that is no longer needed.`,
      )
    }
    if (this.#monitors.size < MAX_MONITORS) return
    throw new AgentTasksError('MONITOR_LIMIT', `Max monitors of all owners (${MAX_MONITORS}) reached.`)
  }

  /** @throws INVALID_INPUT for an unusable pattern */
  #create(id: string, state: StoredMonitor): Monitor {
    const { clock, batch } = this.#registry
    const monitor: Monitor = new Monitor(id, state, clock, (text) => batch(() => this.#onEvent(monitor, text)))
    return monitor
  }

  #begin(monitor: Monitor, source: FollowedFile | TaskEntry | undefined, position = 0): void {
    this.#monitors.set(monitor.id, monitor)
    this.#registry.families.setOwner(monitor.owner)
    if (source instanceof FollowedFile) {
      monitor.beginAt(source.at)
      monitor.source = source
    } else if (source !== undefined) this.#follow(monitor, source, position)
    this.#keep(monitor)
    this.#schedule(monitor)
  }

  #follow(monitor: Monitor, entry: TaskEntry, from: number): void {
    let position = from
    monitor.beginAt({ position, attempt: entry.record.attempt })
    const output = outputOf(this.#registry, entry, from).subscribe({
      next: ({ text, cursor }) => {
        const lineEnd = text.lastIndexOf('\n')
        if (lineEnd !== -1) position = cursor - new TextEncoder().encode(text.slice(lineEnd + 1)).length
        monitor.push(text, { position })
        this.#schedule(monitor)
      },
      complete: () => monitor.end(`its task has ended (${entry.record.status})`),
    })
    monitor.source = { close: () => output.unsubscribe() }
    if (monitor.hasEnded) output.unsubscribe()
  }

  /** @returns false if the owner does not receive the event, because too many notes are owed to it */
  #onEvent(monitor: Monitor, text: string | undefined): boolean {
    const { id, owner, hasEnded } = monitor
    const { input, isOwn } = monitor.state
    const note = { owner, source: 'monitor', title: input.description ?? 'matching lines', isFinal: hasEnded }
    const isTold = text === undefined || addNote(this.#registry, { ...note, text }) !== undefined
    if (!hasEnded) return isTold
    this.#registry.count(`monitor_ends ${monitor.endedBy}`)
    this.#monitors.delete(id)
    this.#dues.delete(monitor)
    this.#setTimer()
    this.#registry.persistence?.dropState(FEATURE, id)
    const entry = isOwn === true ? this.#registry.history.get(input.taskId ?? '') : undefined
    if (entry !== undefined) this.#registry.cancel(entry, 'its monitor has ended')
    return isTold
  }

  #keep(monitor: Monitor): void {
    if (monitor.hasEnded) return
    this.#registry.persistence?.keepState(FEATURE, monitor.id, monitor.state)
  }

  /** Schedules the next check of a monitor. If an earlier check is scheduled, that check calls this method again. */
  #schedule(monitor: Monitor): void {
    const { dueAt, hasEnded, scheduledAt } = monitor
    if (hasEnded || dueAt >= scheduledAt) return
    monitor.scheduledAt = dueAt
    this.#dues.set(monitor, dueAt)
    this.#setTimer()
  }

  #tick(): void {
    const now = elapsedMs(this.#registry.clock)
    for (let monitor = this.#dues.take(now); monitor !== undefined; monitor = this.#dues.take(now)) {
      const { events } = monitor.state
      monitor.scheduledAt = Infinity
      monitor.tick()
      this.#registry.count('monitor_events', monitor.state.events - events)
      if (monitor.state.events !== events) this.#keep(monitor)
      this.#schedule(monitor)
    }
    this.#setTimer()
  }

  #setTimer(): void {
    const { next, nextKey } = this.#dues
    const looks = nextKey?.source?.look !== undefined
    this.#timer.set(next, () => ({ name: `monitor ${nextKey?.id ?? ''}`, ...(looks && { kind: 'poll' }) }))
  }

  #view(monitor: Monitor): TaskMonitor {
    const { id, owner, state } = monitor
    const { taskId, file, match, key, description, seconds } = state.input
    const cancel = (reason?: string): boolean => {
      const couldEnd = !monitor.hasEnded
      monitor.end(reason === undefined ? undefined : `it was cancelled: ${reason}`, 'cancelled')
      return couldEnd
    }
    const shown = { id, owner, match, endsAt: state.startedAt + seconds * 1000, events: state.events, cancel }
    return Object.freeze({ ...shown, ...omitUndefined({ taskId, file, key, description }) })
  }

  #restore(rows: ReadonlyMap<string, StoredJson>): void {
    takeRows(this.#registry, { feature: FEATURE, schema: storedMonitorSchema(), rows }, (row, id) =>
      this.#resume(id, row),
    )
  }

  /** Continues a monitor of an earlier process, or reports its end if its task no longer runs. */
  #resume(id: string, { isOwn, ...stored }: StoredMonitor): void {
    const { history } = this.#registry
    const { input, attempt, position } = stored
    const { taskId, file } = input
    const owner = presentOwner(this.#registry, input)
    const monitor = this.#create(id, { ...stored, input: { ...input, owner } })
    if (file !== undefined) {
      this.#begin(monitor, new FollowedFile(file, this.#limits.files, stored))
      return
    }
    const entry = history.get(taskId ?? '')
    const isLive = entry?.ref !== undefined
    this.#begin(monitor, isLive ? entry : undefined, attempt === entry?.record.attempt ? position : 0)
    if (!isLive) monitor.end(isOwn === true ? 'its command ended with the process that ran it' : 'its task has ended')
  }
}

/**
 * Lists monitors, one per line.
 * @param now in ms since the epoch
 */
export const monitorLines = (listed: readonly TaskMonitor[], now: number, maxChars: number): string =>
  listed.length === 0
    ? 'No monitors.'
    : boundLines(
        listed.map((monitor) => lineOf(monitor, now)),
        maxChars,
      )

function lineOf({ id, owner, taskId, file, description, events, endsAt }: TaskMonitor, now: number): string {
  const what = taskId === undefined ? `file ${file ?? ''}` : `task ${taskId}`
  const label = description === undefined ? '' : ` - ${description}`
  return toOneLine(`- ${id} of ${owner}: ${what}, ${events} event(s), ends in ${formatDuration(now, endsAt)}${label}`)
}

export const monitors = (registry: TaskRegistry): Monitors => new Monitors(registry)
