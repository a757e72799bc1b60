/** Restores what an earlier process left in a store, when a manager is created. */
import { elapsedMs, type Clock } from '../../system/clock.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { dependencies, isHeldBack } from '../../features/dependencies/dependencies.js'
import { readStoredWait } from '../../features/dependencies/stored-wait.js'
import { needsOf } from '../../features/named-slots/task-needs.js'
import { graceFor, launches, noteController, plans } from '../run-plan.js'
import type { FindRunner } from '../../engine/runner.js'
import type { ActiveTaskInfo, AsyncTaskInfo, TaskAttempt } from '../../../machines/records.js'
import { runOfOwner } from '../../../machines/run-owner.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { rankOf } from '../../../machines/task-queue.js'
import { hasEnded, isWaiting } from '../../../machines/task-status.js'
import { endSurvivor, runTime } from '../../engine/program-folder.js'
import type { RestorableRecord } from '../../protocol/record-fields.js'
import { livingOwner } from '../../features/families/families.js'
import { RUN_FIELDS } from '../../../machines/record-fields.js'
import { termsOf, withAttempt, withoutFields } from '../../../machines/task-record.js'
import { jsonBytes } from '../../data/json-size.js'
import { fateOf, type RecoveryDecision } from './interrupted-runs.js'
import { DELIVERED_BY, REPEAT_OF, type Persistence } from './persistence.js'
import type { TaskRegistry } from '../registry.js'
import { interruption as interruptionText, toRestoredRecords } from './restoring.js'
import type { RunStart } from '../run-plan.js'
import { questionKey, storedQuestions, storedStandings } from './stored-questions.js'
import { checkRows } from './stored-row-checks.js'
import { nextRun, readRun, type FoundRow } from './stored-run.js'
import { settleUnknown, type WasDelivered } from '../../features/delivery/unknown-deliveries.js'
import { interruptionOf, isStillWaiting, type HasEnded, type Interruption } from '../../features/steps/interruptions.js'
import { steps } from '../../features/steps/steps.js'

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

export interface RecoveryHost {
  readonly wasDelivered: WasDelivered | undefined
  readonly findRunner: FindRunner | undefined
  /** Continues the run of an earlier process, or starts the next run. */
  readonly resumeRun: (entry: TaskEntry, start: RunStart) => void
  /** From now on, an abort of the controller of a waiting task cancels the task. */
  readonly link: (entry: TaskEntry) => void
  readonly newController: (taskId: string) => AbortController
}

/** A stored task, and what happens to its run. `decision` is undefined if the task had already ended. */
interface FoundTask {
  readonly task: FoundRow
  readonly decision: RecoveryDecision | undefined
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
  const tasks = contents.tasks.map((row): FoundRow => ({ ...row, run: readRun(row) }))
  endLeftPrograms(registry, persistence, tasks)
  registry.batch(() => registry.restoreStates(contents.featureStates, 'prepare'))
  const active = new Set(tasks.filter(({ status }) => !hasEnded(status)).map(({ id }) => id))
  const hadEnded: HasEnded = (taskId) => !active.has(taskId)
  const carried = new Set(contents.deliveries.flatMap(({ taskIds }) => taskIds))
  const found = inherit(
    tasks.map((task): FoundTask => ({ task, decision: decide(registry, persistence, host, task, hadEnded) })),
  ).map((each) => toNextAttempt(each, registry, hadEnded))
  const asked = new Set(contents.deliveries.flatMap(({ questions = [] }) => questions.map(questionKey)))
  const idsOf = (type: RecoveryDecision['type']): string[] =>
    found.flatMap(({ task, decision }) => (decision?.type === type ? [task.id] : []))
  registry.batch(() => {
    // Queued tasks must not start before all tasks and counted starts are restored, because the limits are not known until then.
    registry.limits.isClosed = true
    registry.use(dependencies).restoring(namedTasks(found), () => {
      restoreEnded(registry, persistence, found, carried)
      const { agingMs } = registry.pools.task.queue.limits
      const monotonic = monotonicTimes(registry.clock)
      return inOrder(found, agingMs).flatMap(
        (each) => resumeRun({ registry, persistence, host, asked, monotonic, hadEnded }, each) ?? [],
      )
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
    interrupted: [...idsOf('interrupted'), ...idsOf('ending')],
    uncertain,
  }))
}

/** Ends programs of tasks that had ended. Such a program was being stopped when its host died. */
function endLeftPrograms({ report }: TaskRegistry, persistence: Persistence, tasks: readonly FoundRow[]): void {
  const folders = persistence.folders()
  if (folders.size === 0) return
  for (const task of tasks) {
    const folder = hasEnded(task.status) ? persistence.folderOf(task) : undefined
    if (folder === undefined || !folders.has(folder)) continue
    try {
      endSurvivor(folder, task.run.program)
    } catch (error) {
      report(error, { source: 'runner', taskId: task.id })
    }
  }
}

function decide(
  registry: TaskRegistry,
  persistence: Persistence,
  { findRunner }: RecoveryHost,
  task: FoundRow,
  hadEnded: HasEnded,
): RecoveryDecision | undefined {
  if (hasEnded(task.status)) return undefined
  const { clock, report } = registry
  const folder = persistence.folderOf(task)
  return fateOf(task, {
    findRunner,
    folder,
    clock,
    report,
    steps: registry.use(steps).found(task.id),
    hasEnded: hadEnded,
  })
}

/** Passes the tasks of a dead run to the owner of the run's task, even if that task is run again. */
function inherit(found: readonly FoundTask[]): readonly FoundTask[] {
  if (found.every(({ task }) => runOfOwner(task.owner) === undefined)) return found
  const records = new Map(found.map(({ task }) => [task.id, task.record as unknown as AsyncTaskInfo]))
  const alive = new Set(found.flatMap(({ task, decision }) => (keepsChildren(decision) ? [task.id] : [])))
  return found.map(({ task, decision }) => {
    const record = records.get(task.id) as AsyncTaskInfo
    const owner = livingOwner(
      record,
      (id) => records.get(id),
      (id) => alive.has(id),
    )
    if (owner === record.owner) return { task, decision }
    return { task: { ...task, owner, record: { ...task.record, owner } }, decision, isChanged: true }
  })
}

/** Whether the run continues, or the next run takes over its children. */
const keepsChildren = (decision: RecoveryDecision | undefined): boolean =>
  decision !== undefined &&
  decision.type !== 'interrupted' &&
  decision.type !== 'ending' &&
  (decision.type === 'followed' || decision.definition.durable === true)

/**
 * Begins the next attempt of a task. Its run starts only when the number of the attempt is stored, so that the attempt counts even if this process
 * dies too. Something may delay the run, such as a start rate.
 */
function toNextAttempt(found: FoundTask, registry: TaskRegistry, hadEnded: HasEnded): FoundTask {
  const { task, decision } = found
  if (decision?.type !== 'repeated') return found
  const { clock } = registry
  const { durable, rate } = decision.definition
  const interruption = durable === true ? interruptionOf(task, registry.use(steps).found(task.id), hadEnded) : undefined
  const waits = interruption?.isWaiting === true || rate !== undefined || registry.ownerHold(task.owner) !== undefined
  return { ...found, task: nextRow(task, clock.now(), waits, interruption), isChanged: true }
}

/**
 * Returns the row of the next run. It counts as another attempt, unless the last run had not begun or was stopped because its process was closed, or
 * has saved progress. The questions of a durable task stay open.
 * @param interruption how the last run of a durable task was interrupted
 */
function nextRow(task: FoundRow, now: number, waits: boolean, interruption: Interruption | undefined): FoundRow {
  const { deadlineAt: _, ...fields } = task
  const { timeoutMs, startedAt, attempts, questions } = task.record
  const { hasNotBegun, suspensions, suspended = 0 } = task.run
  const wasStopped = hasNotBegun === true || suspended > 0
  const { progress, fruitless, isWaiting = false } = interruption ?? { progress: 0, fruitless: 1 }
  const attempt = task.attempt + Number(!wasStopped && fruitless > 0)
  const interrupted: TaskAttempt = {
    number: task.attempt,
    startedAt: typeof startedAt === 'number' ? startedAt : task.launchedAt,
    error: interruptionText(task.record as unknown as AsyncTaskInfo),
  }
  return {
    ...fields,
    ...(waits && { status: 'queued' }),
    attempt,
    ...(!waits && typeof timeoutMs === 'number' && { deadlineAt: now + timeoutMs }),
    record: {
      ...withoutFields(task.record, RUN_FIELDS),
      ...(waits ? { status: 'queued' } : { startedAt: now }),
      ...(attempt > task.attempt && {
        attempt,
        attempts: withAttempt(attempts as readonly TaskAttempt[] | undefined, interrupted),
      }),
      ...(interruption && omitUndefined({ questions })),
    },
    run: {
      ...nextRun(task.run),
      ...(waits && { notBefore: now, delayMs: 0 }),
      ...(interruption
        ? omitUndefined({
            interruption: { progress, fruitless },
            isWaiting: isWaiting || undefined,
            questions: task.run.questions,
          })
        : wasStopped && omitUndefined({ suspensions: hasNotBegun === true ? suspensions : suspended })),
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
  const ended = found.filter(({ decision }) => decision === undefined || decision.type === 'interrupted')
  const byId = new Map(ended.map((each) => [each.task.id, each]))
  const records = ended.map(({ task, decision }) => toRecord(task, decision, carried))
  for (const record of toRestoredRecords(records, registry.clock.now())) {
    const { task, decision, isChanged = false } = byId.get(record.id) ?? {}
    const { [DELIVERED_BY]: deliveryId, [REPEAT_OF]: repeatOf } = task?.record ?? {}
    registry.send({
      type: 'task.restore',
      record,
      ...(typeof deliveryId === 'string' && { deliveryId }),
      ...(typeof repeatOf === 'string' && { repeatOf }),
    })
    const entry = registry.history.get(record.id)
    if (entry !== undefined && task !== undefined) {
      persistence.restore(entry, task, decision !== undefined || isChanged)
    }
  }
}

/** If an unconfirmed message contains the result, it is owed until it is known whether that message arrived. */
function toRecord(
  { record, id }: FoundRow,
  decision: RecoveryDecision | undefined,
  carried: ReadonlySet<string>,
): RestorableRecord {
  const restorable = record as unknown as RestorableRecord
  if (decision?.type === 'interrupted') return { ...restorable, error: decision.error }
  if (!carried.has(id) || restorable.delivery !== 'delivered') return restorable
  const { notifiedAt: _, ...fields } = restorable
  return { ...fields, delivery: 'owed' }
}

const namedTasks = (found: readonly FoundTask[]): ReadonlySet<string> =>
  new Set(
    found.flatMap(({ task: { run }, decision }) => {
      const wait = decision?.type === 'waiting' ? readStoredWait(run.after) : undefined
      return wait !== undefined && isHeldBack(wait) ? [...wait.results.keys()] : []
    }),
  )

/** What all tasks that go on have in common. */
interface Continuation {
  readonly registry: TaskRegistry
  readonly persistence: Persistence
  readonly host: RecoveryHost
  /** The keys of the questions that unconfirmed messages contain. */
  readonly asked: ReadonlySet<string>
  readonly monotonic: (at: number) => number
  readonly hadEnded: HasEnded
}

/** Continues a task with the time that is left until its deadline, but at most its whole timeout. */
function resumeRun(
  { registry, persistence, host, asked, monotonic, hadEnded }: Continuation,
  { task, decision, isChanged = false }: FoundTask,
): TaskEntry | undefined {
  if (decision === undefined || decision.type === 'interrupted') return undefined
  const { id, deadlineAt, run } = task
  const { questions: _, waitsFor: _waits, ...fields } = task.record as unknown as ActiveTaskInfo
  const log = decision.definition.durable === true ? registry.use(steps).found(id) : undefined
  const questions = storedQuestions(task, log)
  const record = Object.freeze({
    ...fields,
    ...(questions.length > 0 && { questions }),
    abortController: host.newController(id),
  })
  const ranMs =
    decision.type === 'followed'
      ? ranFor(persistence, task, registry.clock.now())
      : Math.max((log?.activeMs ?? 0) - (record.spent?.seconds ?? 0) * 1000, 0)
  const remainingMs =
    deadlineAt === undefined || record.timeoutMs === undefined || decision.type === 'ending'
      ? undefined
      : Math.max(record.timeoutMs - (decision.type === 'followed' ? ranMs : 0), 0)
  const runner = decision.definition
  const graceMs = graceFor(runner, run.graceMs ?? 0)
  const { retry } = runner
  const params =
    decision.type === 'followed' || decision.type === 'ending' ? (run.params ?? undefined) : decision.params
  const results = readStoredWait(run.after)
  const { goalPrompt: goal, after, subagentName } = record
  const needs = needsOf(registry, record, runner)
  const ticket = {
    priority: run.priority ?? 0,
    since: monotonic(record.launchedAt),
    bytes: jsonBytes({ goal, params, ...omitUndefined({ after }) }),
    ...omitUndefined({ needs }),
  }
  const start = { runner, graceMs, params, previous: run.previous }
  // The system time may have been set back, so what is left of the wait is at most the whole wait.
  const delayMs = Math.min(Math.max((run.notBefore ?? 0) - registry.clock.now(), 0), run.delayMs ?? 0)
  const waitedMs = Math.max(waitEnd(registry, record.owner) - (run.notBefore ?? record.launchedAt), 0)
  const entry = registry.ask({
    type: 'task.resume',
    record,
    graceMs,
    ranMs,
    remainingMs,
    delayMs,
    waitedMs,
    isHeld: decision.type === 'waiting' && results !== undefined && isHeldBack(results),
    isWaiting: isStillWaiting(task, log, hadEnded),
    durable:
      decision.definition.durable === true
        ? { activeMs: log?.activeMs, asked: log?.asked ?? 0, standings: storedStandings(task, asked) }
        : undefined,
    pool: run.pool ?? 'task',
    ticket,
    place: run.place,
    prepare: (prepared) => {
      persistence.restore(prepared, task, isChanged)
      if (results !== undefined) registry.use(dependencies).restore(prepared, results)
      if (decision.type === 'ending') return
      launches.set(prepared, { input: { subagentName, goalPrompt: goal, graceMs, ...termsOf(record) }, params, runner })
      if (decision.type === 'waiting' || retry !== undefined || runner.durable === true) {
        plans.set(prepared, { start, ticket, retry, stops: run.suspensions ?? 0 })
      }
    },
  })
  if (entry === undefined) return undefined
  noteController(entry)
  if (isWaiting(record.status)) host.link(entry)
  else {
    host.resumeRun(entry, {
      ...start,
      isResumed: decision.type === 'followed',
      isRepeated: decision.type === 'repeated',
    })
  }
  return entry
}

/**
 * Returns a function that converts a time of the system clock to the monotonic clock. All times are converted with one reading of the two clocks,
 * because the time between two readings would change the order of tasks that were launched within a millisecond.
 */
function monotonicTimes(clock: Clock): (at: number) => number {
  const [now, elapsed] = [clock.now(), elapsedMs(clock)]
  return (at) => elapsed - Math.max(now - at, 0)
}

/**
 * Returns how long a continued run has lasted, in ms. If the system does not know the age of the process, the system time is used, which may have been
 * set.
 */
function ranFor(persistence: Persistence, task: FoundRow, now: number): number {
  const folder = persistence.folderOf(task)
  const { program } = task.run
  const { startedAt, launchedAt } = task.record as unknown as ActiveTaskInfo
  const ran = folder === undefined || program === undefined ? undefined : runTime(folder, program)
  return ran ?? Math.max(now - (startedAt ?? launchedAt), 0)
}

/** Returns the time until which the tasks of an owner have waited for slots. While they are held, they do not wait for slots. */
const waitEnd = (registry: TaskRegistry, owner: string): number =>
  Math.min(registry.clock.now(), registry.ownerHold(owner)?.since ?? Infinity)

/** Orders tasks for the registration: tasks that ran come first, so that they get their slots. Waiting tasks follow in the order of their queue. */
function inOrder(found: readonly FoundTask[], agingMs: number): FoundTask[] {
  const rank = ({ task: { run, seq, launchedAt } }: FoundTask): readonly [number, number] => [
    rankOf(run.priority ?? 0, launchedAt, agingMs),
    run.place ?? seq,
  ]
  const waiting = found.filter(({ decision }) => decision?.type === 'waiting')
  waiting.sort((a, b) => {
    const [[priority, place], [otherPriority, otherPlace]] = [rank(a), rank(b)]
    return otherPriority - priority || place - otherPlace
  })
  return [...found.filter(({ decision }) => decision?.type !== 'waiting'), ...waiting]
}
