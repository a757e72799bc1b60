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

/** The tasks that were restored from the store, as ids. */
export interface Recovery {
  /** Their programs survived and continue. */
  readonly adopted: readonly string[]
  /** They were waiting for a slot or other tasks, and wait again. */
  readonly queued: readonly string[]
  /** Their runs ended with the process. They are run again. */
  readonly retried: readonly string[]
  /** Their runs ended with the process. They have failed. */
  readonly interrupted: readonly string[]
  /** It is unknown whether their message arrived. They are owed again as possible repeats. */
  readonly uncertain: readonly string[]
}

/** How to continue the runs of an earlier process. */
export interface RecoveryHost {
  readonly wasDelivered: WasDelivered | undefined
  readonly findRunner: FindRunner | undefined
  /** Continues a run, or starts the next one. */
  readonly goOn: (entry: TaskEntry, start: RunStart) => void
  /** Listens to the controller of a waiting task. */
  readonly link: (entry: TaskEntry) => void
  readonly newController: (taskId: string) => AbortController
}

/** A stored task and what happens to its run; undefined if the task had ended. */
interface FoundTask {
  readonly task: StoredTask
  readonly fate: Fate | undefined
  /** Whether it differs from its stored form: it has another owner, or another attempt begins. */
  readonly isChanged?: boolean
}

/**
 * Restores the stored tasks. Resolves when it is known which results are owed. Never rejects.
 * @throws StoreError for an invalid row; no change was made then
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
    // Waiting tasks start only when all tasks and counted starts are restored.
    registry.limits.isClosed = true
    registry.use(dependencies).restoring(namedTasks(found), () => {
      restoreEnded(registry, persistence, found, carried)
      const { agingMs } = registry.pools.task.queue.limits
      return inOrder(found, agingMs).flatMap((each) => goOn(registry, persistence, host, each, asked) ?? [])
    })
    registry.restoreStates(contents.featureStates)
    // Holds these results until it is known whether their messages arrived.
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

/** Ends programs whose tasks had ended, such as one that was being stopped when its host died. */
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

/** Passes the tasks of a dead run to the owner of its task, even if the task is run again. */
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

/** Whether the run continues, or the next run keeps its children. */
const keepsChildren = (fate: Fate | undefined): boolean =>
  fate !== undefined && fate.type !== 'interrupted' && (fate.type === 'followed' || fate.definition.durable === true)

/**
 * Begins the next attempt of a task. It starts when its number is stored, so that it counts even if this process dies. A rate or a pause may delay
 * it.
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

/** Begins the next run of a durable task. It is another attempt only if the last run saved no progress. Its questions stay open. */
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

/** Restores the tasks that had ended, and those that have failed now. */
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

/** A result in a message is owed until it is known that the message arrived. */
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

/** Continues a task with the time that is left until its deadline, at most the whole timeout. */
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

/** How long a continued run has lasted, in ms. Without process times of the system it is computed from the system time, which may have been set. */
function ranFor(persistence: Persistence, task: StoredTask, now: number): number {
  const folder = persistence.folderOf(task)
  const program = toStartedProgram(task.run?.['program'])
  const { startedAt, launchedAt } = task.record as unknown as ActiveTaskInfo
  const ran = folder === undefined || program === undefined ? undefined : runTime(folder, program)
  return ran ?? Math.max(now - (startedAt ?? launchedAt), 0)
}

const priorityOf = ({ priority }: StoredJson): number => (typeof priority === 'number' ? priority : 0)

/** The rest of the wait for the next run, by the system time. At most the whole wait, because the system time may have been set back. */
function waitLeft({ notBefore, delayMs }: StoredJson, now: number): number {
  return typeof notBefore === 'number' && typeof delayMs === 'number'
    ? Math.min(Math.max(notBefore - now, 0), delayMs)
    : 0
}

/** The time until which the tasks of an owner have waited for slots. A pause does not count. */
const waitEnd = ({ clock, pauses }: TaskRegistry, owner: string): number =>
  Math.min(clock.now(), ...pauses.of(owner).map(({ since }) => since))

/** When a task began to wait for a slot, by the system time: the end of its back-off, or its launch. */
function waitedSince({ notBefore }: StoredJson, launchedAt: number, now: number): number {
  return Math.max(now - (typeof notBefore === 'number' ? notBefore : launchedAt), 0)
}

const placeOf = ({ place }: StoredJson): number | undefined => (typeof place === 'number' ? place : undefined)

/** Orders tasks so that those that ran take their slots before those that wait, which follow in queue order. */
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
