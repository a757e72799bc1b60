/** Restores what an earlier process left in a store, when a manager is created. */
import { elapsedMs } from '../../clock.js'
import { defined } from '../../defined.js'
import { dependencies, isHeldBack } from '../dependencies/dependencies.js'
import { readStoredWait } from '../dependencies/stored-wait.js'
import { needsOf } from '../named-slots/task-needs.js'
import { launches, plans } from '../run-plan.js'
import type { FindRunner, PreviousTask } from '../../engine/runner.js'
import type { ActiveTaskInfo, AsyncTaskInfo, SlotPool, TaskAttempt } from '../../../machines/records.js'
import { runOfOwner } from '../../../machines/families.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { rankOf } from '../../../machines/task-queue.js'
import { hasEnded } from '../../../machines/task-status.js'
import { endSurvivor, runTime } from '../../engine/program-folder.js'
import { toStartedProgram } from '../../engine/reap.js'
import type { RestorableRecord } from '../../protocol/async-tasks.js'
import type { StoredJson, StoredTask } from '../../store/store.js'
import { livingOwner } from '../families/families.js'
import { withAttempt, withoutRun } from '../../../machines/task-record.js'
import { jsonBytes } from '../../json/json-size.js'
import { fateOf, storedParams, type Fate } from './interrupted-runs.js'
import { DELIVERED_BY, type Persistence } from './persistence.js'
import type { TaskRegistry } from '../registry.js'
import { interruption, toRestoredRecords } from './restoring.js'
import type { RunStart } from '../run-plan.js'
import { questionKey, storedQuestions, storedStandings } from './stored-questions.js'
import { checkRows } from './stored-row-checks.js'
import { settleUnknown, type WasDelivered } from '../delivery/unknown-deliveries.js'
import { interruptionOf, isStillWaiting, type Interruption } from '../steps/interruptions.js'
import { steps } from '../steps/steps.js'

/** The ids of the tasks that were restored from the store. */
export interface Recovery {
  /** Tasks whose programs survived and continue. */
  readonly adopted: readonly string[]
  /** Tasks that were waiting for a slot or for other tasks, and wait again. */
  readonly queued: readonly string[]
  /** Tasks that are run again, because their runs ended with the process. */
  readonly retried: readonly string[]
  /** Tasks that have failed, because their runs ended with the process. */
  readonly interrupted: readonly string[]
  /** Tasks with a result that may have been delivered before the crash. They are owed again, marked as possible repeats. */
  readonly uncertain: readonly string[]
}

/** What the recovery needs from the manager to continue runs. */
export interface RecoveryHost {
  readonly wasDelivered: WasDelivered | undefined
  readonly findRunner: FindRunner | undefined
  /** Continues the run of an earlier process, or starts the next run. */
  readonly goOn: (entry: TaskEntry, start: RunStart) => void
  /** From now on, an abort of the controller of a waiting task cancels the task. */
  readonly link: (entry: TaskEntry) => void
  readonly newController: (taskId: string) => AbortController
}

/** A stored task, and what happens to its run. `fate` is undefined if the task had already ended. */
interface FoundTask {
  readonly task: StoredTask
  readonly fate: Fate | undefined
  /** Whether the task differs from its row in the store: it has another owner, or another attempt begins. */
  readonly isChanged?: boolean
}

/**
 * Restores the stored tasks. The promise resolves when it is known which results are owed. It never rejects.
 * @throws StoreError (not as a rejection) for an invalid row; nothing was changed then
 */
export function recover(registry: TaskRegistry, persistence: Persistence, host: RecoveryHost): Promise<Recovery> {
  const contents = persistence.takeContents()
  checkRows(contents, persistence.name)
  endLeftPrograms(registry, persistence, contents.tasks)
  registry.batch(() => registry.restoreStates(contents.featureStates, 'prepare'))
  const carried = new Set(contents.deliveries.flatMap(({ taskIds }) => taskIds))
  const found = inherit(
    contents.tasks.map((task): FoundTask => ({ task, fate: findFate(registry, persistence, host, task) })),
  ).map((each) => toNextAttempt(each, registry))
  const asked = new Set(contents.deliveries.flatMap(({ questions = [] }) => questions.map(questionKey)))
  const idsOf = (type: Fate['type']): string[] =>
    found.flatMap(({ task, fate }) => (fate?.type === type ? [task.id] : []))
  registry.batch(() => {
    // Queued tasks must not start before all tasks and counted starts are restored, because the limits are not known until then.
    registry.limits.isClosed = true
    registry.use(dependencies).restoring(namedTasks(found), () => {
      restoreEnded(registry, persistence, found, carried)
      const { agingMs } = registry.pools.task.queue.limits
      return inOrder(found, agingMs).flatMap((each) => goOn(registry, persistence, host, each, asked) ?? [])
    })
    registry.restoreStates(contents.featureStates)
    // Leases the results and questions in earlier messages, so that they are not delivered until it is known whether these messages arrived.
    registry.send({ type: 'questions.address' })
    for (const { id: deliveryId, taskIds, questions = [] } of contents.deliveries) {
      registry.send({ type: 'lease.restore', request: { deliveryId, taskIds, questions } })
    }
    registry.limits.isClosed = false
    if (registry.limits.size > 0) registry.send({ type: 'retries.due' })
  })
  return settleUnknown(registry, persistence, contents.deliveries, host.wasDelivered).then((uncertain) => ({
    adopted: idsOf('followed'),
    queued: idsOf('waiting'),
    retried: idsOf('repeated'),
    interrupted: idsOf('interrupted'),
    uncertain,
  }))
}

/** Ends programs of tasks that had ended. Such a program was being stopped when its host died. */
function endLeftPrograms({ report }: TaskRegistry, persistence: Persistence, tasks: readonly StoredTask[]): void {
  const folders = persistence.folders()
  if (folders.size === 0) return
  for (const task of tasks) {
    const folder = hasEnded(task.status) ? persistence.folderOf(task) : undefined
    if (folder === undefined || !folders.has(folder)) continue
    try {
      endSurvivor(folder, toStartedProgram(task.run?.['program']))
    } catch (error) {
      report(error, { source: 'runner', taskId: task.id })
    }
  }
}

function findFate(
  registry: TaskRegistry,
  persistence: Persistence,
  { findRunner }: RecoveryHost,
  task: StoredTask,
): Fate | undefined {
  if (hasEnded(task.status)) return undefined
  const { clock, report } = registry
  const folder = persistence.folderOf(task)
  return fateOf(task, { findRunner, folder, clock, report, steps: registry.use(steps).found(task.id) })
}

/** Passes the tasks of a dead run to the owner of the run's task, even if that task is run again. */
function inherit(found: readonly FoundTask[]): readonly FoundTask[] {
  if (found.every(({ task }) => runOfOwner(task.owner) === undefined)) return found
  const records = new Map(found.map(({ task }) => [task.id, task.record as unknown as AsyncTaskInfo]))
  const alive = new Set(found.flatMap(({ task, fate }) => (keepsChildren(fate) ? [task.id] : [])))
  return found.map(({ task, fate }) => {
    const record = records.get(task.id) as AsyncTaskInfo
    const owner = livingOwner(
      record,
      (id) => records.get(id),
      (id) => alive.has(id),
    )
    if (owner === record.owner) return { task, fate }
    return { task: { ...task, owner, record: { ...task.record, owner } }, fate, isChanged: true }
  })
}

/** Whether the run continues, or the next run takes over its children. */
const keepsChildren = (fate: Fate | undefined): boolean =>
  fate !== undefined && fate.type !== 'interrupted' && (fate.type === 'followed' || fate.definition.durable === true)

/**
 * Begins the next attempt of a task. Its run starts only when the number of the attempt is stored, so that the attempt counts even if this process
 * dies too. A start rate or a pause may delay the run.
 */
function toNextAttempt(found: FoundTask, registry: TaskRegistry): FoundTask {
  const { task, fate } = found
  if (fate?.type !== 'repeated') return found
  const { clock, pauses } = registry
  const { durable, rate } = fate.definition
  const interruption = durable === true ? interruptionOf(task, registry.use(steps).found(task.id)) : undefined
  const waits = interruption?.isWaiting === true || rate !== undefined || pauses.concern(task.owner)
  const next = nextAttempt(task, clock.now(), waits)
  return {
    ...found,
    task: interruption === undefined ? next : durableAttempt(task, next, interruption),
    isChanged: true,
  }
}

/** Begins the next run of a durable task. It counts as another attempt only if the last run has saved no progress. Questions stay open. */
function durableAttempt(task: StoredTask, next: StoredTask, interruption: Interruption): StoredTask {
  const { progress, fruitless, isWaiting } = interruption
  const { attempt, record } = fruitless > 0 ? next : task
  const { attempt: _, attempts: _all, ...fields } = next.record
  return {
    ...next,
    attempt,
    record: {
      ...fields,
      ...defined({ attempt: record['attempt'], attempts: record['attempts'], questions: task.record['questions'] }),
    },
    run: {
      ...next.run,
      interruption: { progress, fruitless },
      ...(isWaiting && { isWaiting }),
      ...defined({ questions: task.run?.['questions'] }),
    },
  }
}

function nextAttempt(task: StoredTask, now: number, waits: boolean): StoredTask {
  const { deadlineAt: _, run = {}, ...fields } = task
  const { graceMs, pool, params, key, foundAs, retry, priority, place, after, previous } = run
  const { attempts, startedAt } = task.record
  const record: StoredJson = withoutRun(task.record)
  const interrupted: TaskAttempt = {
    number: task.attempt,
    startedAt: typeof startedAt === 'number' ? startedAt : task.launchedAt,
    error: interruption(task.record as unknown as AsyncTaskInfo),
  }
  const attempt = task.attempt + 1
  const { timeoutMs } = record
  return {
    ...fields,
    ...(waits && { status: 'queued' }),
    attempt,
    ...(!waits && typeof timeoutMs === 'number' && { deadlineAt: now + timeoutMs }),
    record: {
      ...record,
      attempt,
      ...(waits ? { status: 'queued' } : { startedAt: now }),
      attempts: withAttempt(attempts as readonly TaskAttempt[] | undefined, interrupted),
    },
    run: {
      graceMs,
      params,
      ...defined({ key, foundAs, pool, retry, priority, place, after, previous }),
      ...(waits && { notBefore: now, delayMs: 0 }),
    },
  }
}

/** Restores the tasks that had ended, and those that fail because they were interrupted. */
function restoreEnded(
  registry: TaskRegistry,
  persistence: Persistence,
  found: readonly FoundTask[],
  carried: ReadonlySet<string>,
): void {
  const ended = found.filter(({ fate }) => fate === undefined || fate.type === 'interrupted')
  const byId = new Map(ended.map((each) => [each.task.id, each]))
  const records = ended.map(({ task, fate }) => toRecord(task, fate, carried))
  for (const record of toRestoredRecords(records, registry.clock.now())) {
    const { task, fate, isChanged = false } = byId.get(record.id) ?? {}
    const deliveryId = task?.record[DELIVERED_BY]
    registry.send({ type: 'task.restore', record, ...(typeof deliveryId === 'string' && { deliveryId }) })
    const entry = registry.history.get(record.id)
    if (entry !== undefined && task !== undefined) {
      persistence.restore(entry, task, fate !== undefined || isChanged)
    }
  }
}

/** If an unconfirmed message contains the result, it is owed until it is known whether that message arrived. */
function toRecord({ record, id }: StoredTask, fate: Fate | undefined, carried: ReadonlySet<string>): RestorableRecord {
  const restorable = record as unknown as RestorableRecord
  if (fate?.type === 'interrupted') return { ...restorable, error: fate.error }
  if (!carried.has(id) || restorable.delivery !== 'delivered') return restorable
  const { notifiedAt: _, ...fields } = restorable
  return { ...fields, delivery: 'owed' }
}

const namedTasks = (found: readonly FoundTask[]): ReadonlySet<string> =>
  new Set(
    found.flatMap(({ task: { run = {} }, fate }) => {
      const wait = fate?.type === 'waiting' ? readStoredWait(run) : undefined
      return wait !== undefined && isHeldBack(wait) ? [...wait.results.keys()] : []
    }),
  )

/** Continues a task with the time that is left until its deadline, but at most its whole timeout. */
function goOn(
  registry: TaskRegistry,
  persistence: Persistence,
  host: RecoveryHost,
  { task, fate, isChanged = false }: FoundTask,
  asked: ReadonlySet<string>,
): TaskEntry | undefined {
  if (fate === undefined || fate.type === 'interrupted') return undefined
  const { id, deadlineAt, run = {} } = task
  const { questions: _, waitsFor: _waits, ...fields } = task.record as unknown as ActiveTaskInfo
  const log = fate.definition.durable === true ? registry.use(steps).found(id) : undefined
  const questions = storedQuestions(task, log)
  const record = Object.freeze({
    ...fields,
    ...(questions.length > 0 && { questions }),
    abortController: host.newController(id),
  })
  const ranMs =
    fate.type === 'followed'
      ? ranFor(persistence, task, registry.clock.now())
      : Math.max((log?.activeMs ?? 0) - (record.spent?.seconds ?? 0) * 1000, 0)
  const graceMs = typeof run['graceMs'] === 'number' ? run['graceMs'] : 0
  const remainingMs =
    deadlineAt === undefined || record.timeoutMs === undefined
      ? undefined
      : Math.max(record.timeoutMs - (fate.type === 'followed' ? ranMs : 0), 0)
  const runner = fate.definition
  const { retry } = runner
  const params = fate.type === 'followed' ? storedParams(task) : fate.params
  const results = readStoredWait(run)
  const { goalPrompt: goal, after, concurrencyKey } = record
  const needs = needsOf(registry, record, runner)
  const ticket = {
    priority: priorityOf(run),
    since: elapsedMs(registry.clock) - Math.max(registry.clock.now() - record.launchedAt, 0),
    bytes: jsonBytes({ goal, params, ...defined({ after }) }),
    ...defined({ needs }),
  }
  const start = { runner, graceMs, params, previous: run['previous'] as PreviousTask | undefined }
  const delayMs = waitLeft(run, registry.clock.now())
  const waitedMs = waitedSince(run, record.launchedAt, waitEnd(registry, record.owner))
  const entry = registry.ask({
    type: 'task.resume',
    record,
    graceMs,
    ranMs,
    remainingMs,
    delayMs,
    waitedMs,
    isHeld: fate.type === 'waiting' && results !== undefined && isHeldBack(results),
    isWaiting: isStillWaiting(task, log),
    durable:
      fate.definition.durable === true
        ? { activeMs: log?.activeMs, asked: log?.asked ?? 0, standings: storedStandings(task, asked) }
        : undefined,
    pool: poolOf(run),
    ticket,
    place: placeOf(run),
    prepare: (prepared) => {
      persistence.restore(prepared, task, isChanged)
      if (results !== undefined) registry.use(dependencies).restore(prepared, results)
      const { subagentName, goalPrompt, timeoutMs } = record
      launches.set(prepared, {
        input: { subagentName, goalPrompt, graceMs, ...defined({ timeoutMs, concurrencyKey }) },
        params,
        runner,
      })
      if (fate.type === 'waiting' || retry !== undefined || runner.durable === true) {
        plans.set(prepared, { start, ticket, retry })
      }
    },
  })
  if (entry === undefined) return undefined
  if (record.status === 'queued') host.link(entry)
  else host.goOn(entry, { ...start, isResumed: fate.type === 'followed' })
  return entry
}

/**
 * Returns how long a continued run has lasted, in ms. If the system does not know the age of the process, the system time is used, which may have been
 * set.
 */
function ranFor(persistence: Persistence, task: StoredTask, now: number): number {
  const folder = persistence.folderOf(task)
  const program = toStartedProgram(task.run?.['program'])
  const { startedAt, launchedAt } = task.record as unknown as ActiveTaskInfo
  const ran = folder === undefined || program === undefined ? undefined : runTime(folder, program)
  return ran ?? Math.max(now - (startedAt ?? launchedAt), 0)
}

const priorityOf = ({ priority }: StoredJson): number => (typeof priority === 'number' ? priority : 0)

/**
 * Returns how much of the wait for the next run is left, in ms. The system time may have been set back, so the result is at most the whole wait.
 */
function waitLeft({ notBefore, delayMs }: StoredJson, now: number): number {
  return typeof notBefore === 'number' && typeof delayMs === 'number'
    ? Math.min(Math.max(notBefore - now, 0), delayMs)
    : 0
}

/**
 * Returns the time until which the tasks of an owner have waited for slots: now, or the beginning of a pause, because a pause does not count as
 * waiting.
 */
const waitEnd = ({ clock, pauses }: TaskRegistry, owner: string): number =>
  Math.min(clock.now(), ...pauses.of(owner).map(({ since }) => since))

/** Returns how long a task has waited for a slot, in ms: since the end of its back-off, or else since its launch. */
function waitedSince({ notBefore }: StoredJson, launchedAt: number, now: number): number {
  return Math.max(now - (typeof notBefore === 'number' ? notBefore : launchedAt), 0)
}

const placeOf = ({ place }: StoredJson): number | undefined => (typeof place === 'number' ? place : undefined)

/** Orders tasks for the registration: tasks that ran come first, so that they get their slots. Waiting tasks follow in the order of their queue. */
function inOrder(found: readonly FoundTask[], agingMs: number): FoundTask[] {
  const rank = ({ task: { run = {}, seq, launchedAt } }: FoundTask): readonly [number, number] => [
    rankOf(priorityOf(run), launchedAt, agingMs),
    placeOf(run) ?? seq,
  ]
  const waiting = found.filter(({ fate }) => fate?.type === 'waiting')
  waiting.sort((a, b) => {
    const [[priority, place], [otherPriority, otherPlace]] = [rank(a), rank(b)]
    return otherPriority - priority || place - otherPlace
  })
  return [...found.filter(({ fate }) => fate?.type !== 'waiting'), ...waiting]
}

function poolOf({ pool }: StoredJson): SlotPool {
  return pool === 'child' || pool === 'command' ? pool : 'task'
}
