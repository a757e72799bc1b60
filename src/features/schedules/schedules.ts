/**
 * Schedules. They send a message to their owner, or launch a task for the owner (promise F16).
 *
 * Schedules follow the system time. Timers use a monotonic clock, so the system time is checked at least every 30 s. A firing and the new state of
 * the schedule are stored in one change, with the message or task.
 */
import { runOfOwner } from '../../../machines/run-owner.js'
import { TaskData } from '../../../machines/task-data.js'
import type { ActiveTaskInfo } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { hasEnded } from '../../../machines/task-status.js'
import { callContext, type CallContext } from '../../isolation/call-context.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { orderedJson } from '../../data/ordered-json.js'
import { checkedParams } from '../../engine/context-schema.js'
import { resolveRunner } from '../../engine/definition.js'
import type { Runner } from '../../engine/runner.js'
import { AgentTasksError, DisposedError } from '../../errors.js'
import type { LaunchTaskInput } from '../../protocol/async-tasks.js'
import { freshId } from '../../data/ids.js'
import { describeFailure } from '../../protocol/outcomes.js'
import { parseInput } from '../../protocol/parse.js'
import { toParams } from '../../protocol/run-fields.js'
import {
  scheduleInfoSchema,
  scheduleInputSchema,
  type ScheduleInfo,
  type ScheduleInput,
  type ScheduleOptions,
} from '../../protocol/schedules.js'
import type { StoredJson } from '../../store/store.js'
import { checkOwner, presentOwner } from '../families/families.js'
import type { Feature, FeatureStates } from '../../async-tasks/feature.js'
import { WallTimes } from '../limits/wall-times.js'
import { addNote, notes } from '../notes/notes.js'
import { DEFAULT_OWNER } from '../../async-tasks/owner.js'
import { takeRows } from '../../async-tasks/recovery/state-rows.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { checkSchedule, type ScheduledLaunch } from './checked-schedule.js'
import { firingText, refusalText } from './schedule-lines.js'
import { cronTime, dueFirings } from './schedule-times.js'

/** A new schedule. */
export interface Schedule {
  /** The id of the schedule, for `cancelSchedule`. */
  readonly id: string
  /** When the schedule fires next, in ms since the epoch; undefined if it has ended. */
  readonly next: number | undefined
  /** Cancels the schedule. A task that the schedule has launched continues. Returns false if the schedule has already ended. */
  cancel(): boolean
}

export interface ScheduleHost {
  readonly options: Required<ScheduleOptions>
  /** @throws INVALID_INPUT for an unknown subagent */
  runnerOf(subagent: string, field: string): Runner
  launch(input: LaunchTaskInput, runner: Runner): ActiveTaskInfo
}

/** How long after its due time a firing still counts as in time, in ms. */
const LATE_MS = 60_000

/** If the clock was set back by more than this, the next times of cron expressions are computed again; in ms. */
const SET_BACK_MS = 3_600_000

/** The maximum number of schedules that fire in one turn of the event loop. Further ones fire in the next turns. */
const MAX_AT_ONCE = 20

type Change = Pick<ScheduleInfo, 'lastTaskId'>

/** Returns the row of a schedule. Its launch has the kept form of the fields for the run. */
function rowOf({ id: _, launch, ...row }: ScheduleInfo): StoredJson {
  if (launch === undefined) return row
  const { subagent, goal, timeoutMs } = launch
  return { ...row, launch: omitUndefined({ subagent, goal, timeoutMs, params: toParams(launch) }) }
}

/** Whether a schedule does the same at the same times as one that is to be created. */
function isSame(schedule: ScheduleInfo, created: ReturnType<typeof checkSchedule>): boolean {
  const isAt = [schedule.in, schedule.every, schedule.cron].every((rule) => rule === undefined)
  const counts = { id: '', owner: '', fired: 0, missedFirings: 0, skippedFirings: 0, lastTaskId: '' }
  const [before, now] = [schedule, created].map((each) =>
    orderedJson({ ...each, ...counts, ...(!isAt && { next: 0 }) }),
  )
  return before === now
}

/** The maximum number of schedules of all owners together. */
const MAX_SCHEDULES = 10_000

const FEATURE = 'schedules'

const launchedBy = new TaskData<string>()

export class Schedules implements Feature {
  readonly states: FeatureStates = { feature: FEATURE, restore: (rows) => this.#restore(rows) }
  /** Launches a task for an owner. An MCP server replaces it by a function that throws if the owner may launch no more tasks. */
  launching = (_owner: string, launch: () => ActiveTaskInfo): ActiveTaskInfo => launch()
  /** Returns the group of an owner. `maxPerOwner` limits each group. An MCP server groups the sessions of one client. */
  groupOf = (owner: string): string => owner
  readonly #registry: TaskRegistry
  readonly #all = new Map<string, ScheduleInfo>()
  /** By id, the context in which a schedule of this process was added. */
  readonly #contexts = new Map<string, CallContext>()
  readonly #times: WallTimes<string>
  /** The ids of schedules that fell due before this process began. */
  readonly #overdue = new Set<string>()
  /** The latest system time that was read so far, in ms since the epoch. */
  #seenAt = -Infinity
  #connected: ScheduleHost | undefined

  constructor(registry: TaskRegistry) {
    this.#registry = registry
    const fireDue = (): void => registry.batch(() => this.#fireDue())
    this.#times = new WallTimes(registry.clock, fireDue, (id) => `schedule ${id}`)
  }

  connect(host: ScheduleHost): void {
    this.#connected = host
  }

  list(owner?: string): ScheduleInfo[] {
    const all = [...this.#all.values()].filter((each) => owner === undefined || each.owner === owner)
    return all.sort((a, b) => a.next - b.next)
  }

  add(given: ScheduleInput): Schedule {
    const host = this.#host
    const { clock, createId, families } = this.#registry
    const input = parseInput(scheduleInputSchema(), given, 'input')
    const { owner = DEFAULT_OWNER, launch } = input
    checkOwner(this.#registry, owner, 'input.owner')
    const runner = launch && host.runnerOf(launch.subagent, 'input.launch.subagent')
    const fields = checkSchedule(input, clock.now(), this.#host.options.minPeriodMs)
    // Checks the context now. Each firing validates it again, and launches the task with what the schema returns.
    if (runner !== undefined) {
      checkedParams(resolveRunner(runner), toParams(fields.launch ?? {}), 'input.launch.context')
    }
    const before = input.key === undefined ? undefined : this.#ofKey(owner, input.key)
    if (before === undefined) {
      this.#checkRoom(owner, host.options)
      this.#registry.use(notes).checkRoom(owner, 'SCHEDULE_LIMIT')
    }
    const id = before?.id ?? freshId(createId, 'schedule', (taken) => this.#all.has(taken))
    // When a run ends, its schedules pass to the owner of its task.
    families.setOwner(owner)
    this.#contexts.set(id, callContext())
    if (before === undefined || !isSame(before, fields)) {
      this.#overdue.delete(id)
      const last = omitUndefined({ lastTaskId: before?.lastTaskId })
      this.#registry.batch(() => this.#put({ ...fields, ...last, id, owner }))
    }
    const all = this.#all
    return {
      id,
      get next() {
        return all.get(id)?.next
      },
      cancel: () => this.cancel(id),
    }
  }

  cancel(id: string): boolean {
    return this.#registry.batch(() => this.#drop(id))
  }

  released(owner: string, heir: string | undefined): void {
    for (const schedule of this.list(owner)) {
      if (heir === undefined) this.#drop(schedule.id)
      else this.#put(this.#passedTo(heir, schedule))
    }
  }

  /** A key that the heir has already stays with the heir's own schedule. */
  #passedTo(owner: string, { key, ...schedule }: ScheduleInfo): ScheduleInfo {
    return { ...schedule, owner, ...(key !== undefined && this.#ofKey(owner, key) === undefined && { key }) }
  }

  #ofKey(owner: string, key: string): ScheduleInfo | undefined {
    return this.list(owner).find((schedule) => schedule.key === key)
  }

  withdrawn(entry: TaskEntry, reason: string): void {
    const { owner, subagentName, goalPrompt } = entry.record
    const id = launchedBy.take(entry)
    if (id !== undefined) this.#note(id, owner, refusalText(subagentName, goalPrompt, reason), true)
  }

  disposed(): void {
    // The rows stay in the store for the next process.
    for (const id of this.#all.keys()) this.#times.delete(id)
    this.#all.clear()
    this.#contexts.clear()
  }

  get #host(): ScheduleHost {
    if (this.#connected === undefined || this.#registry.isDisposed) throw new DisposedError()
    return this.#connected
  }

  #checkRoom(owner: string, { maxPerOwner }: Required<ScheduleOptions>): void {
    const group = this.groupOf(owner)
    const count = [...this.#all.values()].filter((each) => this.groupOf(each.owner) === group).length
    if (count >= maxPerOwner) {
      throw new AgentTasksError(
        'SCHEDULE_LIMIT',
        `Max schedules of an owner (${maxPerOwner}, schedules.maxPerOwner) reached. Cancel one that is no longer needed.`,
      )
    }
    if (this.#all.size < MAX_SCHEDULES) return
    throw new AgentTasksError('SCHEDULE_LIMIT', `Max schedules of all owners (${MAX_SCHEDULES}) reached.`)
  }

  #restore(rows: ReadonlyMap<string, StoredJson>): void {
    const { clock, families } = this.#registry
    takeRows(this.#registry, { feature: FEATURE, schema: scheduleInfoSchema(), rows }, (row, id) => {
      if (row.next <= clock.now()) this.#overdue.add(id)
      const owner = presentOwner(this.#registry, row)
      families.setOwner(owner)
      const next = Math.min(row.next, latestNext(row, clock.now()))
      if (owner === row.owner && next === row.next) this.#set(row)
      else this.#put({ ...row, owner, next })
    })
  }

  #fireDue(): void {
    const now = this.#registry.clock.now()
    this.#shorten(now)
    for (let count = 0; count < MAX_AT_ONCE; count += 1) {
      const id = this.#times.take(now)
      if (id === undefined) break
      const schedule = this.#all.get(id)
      try {
        const context = this.#contexts.get(id) ?? this.#registry.hostContext
        if (schedule !== undefined) context.runInAsyncScope(() => this.#fire(schedule, now))
      } catch (error) {
        this.#registry.report(error, { source: 'schedule', ...omitUndefined({ owner: schedule?.owner }) })
      }
    }
  }

  /** If the system time was set back, makes each next firing earlier if its wait would be longer than the rule of the schedule says. */
  #shorten(now: number): void {
    const wasSetBack = now < this.#seenAt
    this.#seenAt = now
    if (!wasSetBack) return
    for (const schedule of [...this.#all.values()]) {
      const latest = latestNext(schedule, now)
      if (schedule.next > latest) this.#put({ ...schedule, next: latest })
    }
  }

  #fire(schedule: ScheduleInfo, now: number): void {
    const { id, owner, launch, lastTaskId = '' } = schedule
    const { count, last, next } = dueFirings(schedule, schedule.next, now, this.#host.options.minPeriodMs)
    const isLate = this.#overdue.delete(id) || now - last > LATE_MS
    const missed = isLate ? count : count - 1
    this.#registry.count('missed_firings', missed)
    // Updates the schedule before host code runs, because that code may cancel it.
    if (next === undefined) this.#drop(id)
    else this.#put({ ...schedule, next, missedFirings: schedule.missedFirings + missed })
    if (isLate && schedule.missed === 'skip') return
    const before = this.#registry.history.get(lastTaskId)?.record.status
    const overlaps = schedule.overlap === 'skip' && before !== undefined && !hasEnded(before)
    const change = overlaps
      ? undefined
      : launch === undefined
        ? this.#note(id, owner, firingText(schedule, last, missed, next), next === undefined)
        : this.#launch(schedule, launch)
    this.#registry.count(change === undefined ? 'skipped_firings' : 'firings')
    const present = this.#all.get(id)
    if (present === undefined) return
    if (change === undefined) this.#put({ ...present, skippedFirings: present.skippedFirings + 1 })
    else this.#put({ ...present, fired: present.fired + 1, ...change })
  }

  /** @returns the change of the schedule; undefined if no task was launched and no note could be added for the owner */
  #launch({ id, owner }: ScheduleInfo, { subagent, goal, ...further }: ScheduledLaunch): Change | undefined {
    const { history } = this.#registry
    const parentId = runOfOwner(owner)
    const owned = parentId === undefined ? { owner } : { parentId }
    const input = { subagentName: subagent, goalPrompt: goal, ...further, ...owned }
    try {
      const host = this.#host
      const runner = host.runnerOf(subagent, 'launch.subagent')
      const { id: lastTaskId } = this.launching(owner, () => host.launch(input, runner))
      const entry = history.get(lastTaskId)
      if (entry !== undefined) launchedBy.set(entry, id)
      return { lastTaskId }
    } catch (error) {
      return this.#note(id, owner, refusalText(subagent, goal, describeFailure(error)), !this.#all.has(id))
    }
  }

  /** @returns undefined if too many notes are owed to the owner */
  #note(id: string, owner: string, text: string, isFinal: boolean): Change | undefined {
    return addNote(this.#registry, { owner, source: 'schedule', title: id, text, isFinal }) && {}
  }

  #put(schedule: ScheduleInfo): void {
    this.#registry.persistence?.keepState(FEATURE, schedule.id, rowOf(schedule))
    this.#set(schedule)
  }

  #set(schedule: ScheduleInfo): void {
    this.#all.set(schedule.id, Object.freeze(schedule))
    this.#times.set(schedule.id, schedule.next)
  }

  #drop(id: string): boolean {
    if (!this.#all.delete(id)) return false
    this.#contexts.delete(id)
    this.#registry.persistence?.dropState(FEATURE, id)
    this.#times.delete(id)
    this.#overdue.delete(id)
    return true
  }
}

/**
 * Returns the latest time at which the schedule may fire next, seen from `now`. Returns Infinity for a cron expression, unless its stored next firing
 * is more than an hour too late. Such a firing shows that the clock was set back.
 */
function latestNext(schedule: ScheduleInfo, now: number): number {
  if (schedule.cron === undefined) return now + (schedule.in ?? schedule.every ?? Infinity)
  if (schedule.next <= now) return Infinity
  try {
    const match = cronTime(schedule, now) ?? Infinity
    return schedule.next - match > SET_BACK_MS ? match : Infinity
  } catch {
    // If `croner` is missing, the firing itself reports that.
    return Infinity
  }
}

export const schedules = (registry: TaskRegistry): Schedules => new Schedules(registry)
