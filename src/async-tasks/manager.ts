/**
 * The registry of background tasks, with the names and signatures of seed 000. It is a thin face of the registry actor:
 * the charts and `core.ts` keep the invariants, this file turns methods into events and events into answers.
 *
 * It is longer than most files because the seed's class has that many methods.
 */
import type { Observable } from 'rxjs'
import type { z } from 'zod'
import type { AsyncTaskEvent, AsyncTaskMachine } from '../../machines/async-task.js'
import type {
  AsyncTaskInfo,
  CancelledTaskInfo,
  CompletedTaskInfo,
  FailedTaskInfo,
  OutputObject,
  RunningTaskInfo,
  SettledTaskInfo,
  TaskAdmission,
  TaskAnswer,
  TaskProgress,
  TaskTransition,
  TerminalStatus,
} from '../../machines/records.js'
import type { TaskRegistryMachine, TaskRegistryRef } from '../../machines/task-registry.js'
import type { TaskEntry } from '../../machines/task-table.js'
import { systemClock, type Clock } from '../clock.js'
import type { Engine } from '../engine/engine.js'
import { createInProcessEngine } from '../engine/in-process.js'
import {
  AgentTasksError,
  DisposedError,
  InvalidInputError,
  limitReason,
  ReservationError,
  TaskIdInUseError,
  TaskLimitError,
} from '../errors.js'
import {
  launchInputSchema,
  leaseRequestSchema,
  ownerReleaseSchema,
  progressSchema,
  readOutputOptionsSchema,
  registerTaskInputSchema,
  reserveOptionsSchema,
  type LaunchTaskInput,
  type RegisterTaskInput,
  type RestorableRecord,
} from '../protocol/async-tasks.js'
import { checkLeast } from '../protocol/option-checks.js'
import { parseInput } from '../protocol/parse.js'
import { RegistryCore, registerCore } from './core.js'
import { guardActor } from './guarded-actor.js'
import { takeLease, type TaskLease } from './leases.js'
import { DEFAULT_OUTPUT_BYTES, OutputLog, type OutputChunk } from './output-log.js'
import { answerQuestion } from './questions.js'
import { isolateReport, reportToConsole, type OnError } from '../callbacks/error-report.js'
import { toRestoredRecords } from './restoring.js'
import type { Inspect } from '../callbacks/inspection.js'
import type { Runner } from '../engine/runner.js'
import { describeFailure, toOutput } from '../protocol/outcomes.js'
import { startRun } from './runs.js'
import { checkMaxAsyncTasks } from './settings.js'
import { TaskEvents, type OwnerCounts, type TaskProgressEvent, type TaskQuestionsEvent } from './task-events.js'
import { waitForTasks, waitUntilQuiet, type WaitOptions, type WaitResult } from './waiting.js'

/** The owner of a task that names none. */
export const DEFAULT_OWNER = 'main'

/** How long an aborted run may wind down, in ms, before its slot is free and its task has failed. */
const DEFAULT_GRACE_MS = 5000

/** How long a reservation holds its slot, in ms. */
const DEFAULT_RESERVATION_MS = 5000

/** Options of `AsyncTaskManager`; a number in their place is `maxAsyncTasks`. */
export interface AsyncTaskManagerOptions {
  /** How many tasks may run at once: an integer >= 0, or -1 for no limit. Default 5. */
  readonly maxAsyncTasks?: number
  /** A cancelled task owes its owner a message too. Default false. */
  readonly notifyCancelled?: boolean
  /** How long an aborted run may wind down, in ms. Default 5000. */
  readonly graceMs?: number
  /** How much of each task's appended output is kept, in bytes. Default 65536. */
  readonly outputBytes?: number
  /** Drives every timer and timestamp. Default: the platform's. */
  readonly clock?: Clock
  /** Makes ids: `prefix` is a subagent's name, `delivery` or `reservation`. Must not repeat itself. */
  readonly createId?: (prefix: string) => string
  /** Where runs are started. Default: in this process. */
  readonly engine?: Engine
  /** Told of exceptions in the host's callbacks and of results that came too late. Default: `console.error`. */
  readonly onError?: OnError
  /** Sees what the actors do (XState's inspection events), after the fact. Default: nobody, which costs nothing. */
  readonly inspect?: Inspect | undefined
  /** The charts to run, with implementations provided by `machine.provide`. */
  readonly machines?: { readonly registry?: TaskRegistryMachine; readonly task?: AsyncTaskMachine }
}

/** Which part of a task's text to read. */
export interface ReadOutputOptions {
  /** The byte to start at; the start of what is kept when absent. */
  readonly cursor?: number
  /** The most to return, in bytes. Default 16384. */
  readonly maxBytes?: number
}

/** Tracks background tasks from their registration to the message about their end (seeds 000 and 001). */
export class AsyncTaskManager {
  /** Every change of every task, in order, with the record as it was after it. Completes on `dispose`. */
  readonly transitions$: Observable<TaskTransition>
  /** Each task once, when it has ended. */
  readonly settled$: Observable<SettledTaskInfo>
  /** How many messages each owner is owed that are not on their way; the current counts first. */
  readonly owed$: Observable<OwnerCounts>
  /** How many tasks each owner has running; the current counts first. */
  readonly running$: Observable<OwnerCounts>
  /** What runs report of their progress. */
  readonly progress$: Observable<TaskProgressEvent>
  /** What runs wait to be told, whenever that changes. */
  readonly questions$: Observable<TaskQuestionsEvent>
  /**
   * The registry's actor. Its observers are told after a transition, never inside one, and may call any method here.
   */
  readonly actor: TaskRegistryRef
  readonly #core: RegistryCore
  readonly #events: TaskEvents
  readonly #engine: Engine
  readonly #createId: (prefix: string) => string
  readonly #graceMs: number
  readonly #outputBytes: number
  #disposal: Promise<void> | undefined

  /**
   * @param maxAsyncTasks how many tasks may run at once (-1: no limit), or options
   * @throws InvalidSettingError for a limit that is not an integer >= -1, or another option out of its range
   */
  constructor(maxAsyncTasks: number | AsyncTaskManagerOptions = {}) {
    const options = typeof maxAsyncTasks === 'object' ? maxAsyncTasks : { maxAsyncTasks }
    const clock = options.clock ?? systemClock
    const report = isolateReport(options.onError ?? reportToConsole)
    this.#createId = options.createId ?? randomId
    this.#graceMs = checkLeast('graceMs', options.graceMs ?? DEFAULT_GRACE_MS, 0)
    this.#outputBytes = checkLeast('outputBytes', options.outputBytes ?? DEFAULT_OUTPUT_BYTES, 1)
    this.#engine =
      options.engine ??
      createInProcessEngine({
        clock,
        onError: (error, work) => report(error, { source: 'abort-listener', taskId: work.id }),
      })
    this.#core = new RegistryCore({
      max: checkMaxAsyncTasks(options.maxAsyncTasks ?? 5, 'maxAsyncTasks'),
      notifyCancelled: options.notifyCancelled ?? false,
      clock,
      report,
      inspect: options.inspect,
      machines: options.machines ?? {},
    })
    registerCore(this, this.#core)
    this.#events = new TaskEvents(this.#core)
    this.transitions$ = this.#events.transitions$
    this.settled$ = this.#events.settled$
    this.owed$ = this.#events.owed$
    this.running$ = this.#events.running$
    this.progress$ = this.#events.progress$
    this.questions$ = this.#events.questions$
    this.actor = guardActor(this.#core)
  }

  /**
   * Rebuilds a registry from records of before a restart. What was owed or on its way is owed again; a task that was
   * running lost its run and has failed.
   * @throws InvalidInputError if a record is malformed or two have one id
   */
  static restore(records: readonly RestorableRecord[], options?: number | AsyncTaskManagerOptions): AsyncTaskManager {
    const manager = new AsyncTaskManager(options)
    const restored = toRestoredRecords(records, manager.#core.clock.now())
    manager.#core.transact(() => {
      for (const record of restored) manager.#core.send({ type: 'task.restore', record })
    })
    return manager
  }

  // Limit and slots

  /**
   * Changes the limit. Lowering it stops nothing that runs.
   * @throws InvalidSettingError for anything but an integer >= -1; the old limit stays
   */
  setMaxAsyncTasks(max: number): void {
    checkMaxAsyncTasks(max, 'maxAsyncTasks')
    this.#core.transact(() => this.#core.send({ type: 'limit.set', max }))
  }

  /** How many tasks may run at once; -1 for no limit (seed 000). */
  getMaxAsyncTasks(): number {
    return this.#core.table.max
  }

  /** Whether a launch would find a slot now, and why not. */
  canLaunchAsync(): { allowed: boolean; reason?: string } {
    if (this.#disposal !== undefined) return { allowed: false, reason: 'The task manager was disposed' }
    return this.#core.table.hasRoom()
      ? { allowed: true }
      : { allowed: false, reason: limitReason(this.getMaxAsyncTasks()) }
  }

  /**
   * Takes a slot for a task that is about to be registered; until then nobody else gets it.
   * @param options `ttlMs`: after how many ms the reservation expires (default 5000)
   * @returns the reservation's id, or null when no slot is free
   */
  tryReserveAsyncSlot(options: { ttlMs?: number } = {}): string | null {
    if (this.#disposal !== undefined) return null
    const { ttlMs = DEFAULT_RESERVATION_MS } = parseInput(reserveOptionsSchema(), options, 'options')
    const reservationId = this.#freshId('reservation', (id) => this.#core.table.hasReservation(id))
    const isTaken = (): boolean => this.#core.table.hasReservation(reservationId)
    this.#core.transact(() => this.#core.send({ type: 'reservation.take', reservationId, ttlMs }))
    return isTaken() ? reservationId : null
  }

  /** Gives a reserved slot back. False when there was no such reservation (any more). */
  cancelReservation(reservationId: string): boolean {
    if (!this.#core.table.hasReservation(reservationId)) return false
    this.#core.transact(() => this.#core.send({ type: 'reservation.cancel', reservationId }))
    return !this.#core.table.hasReservation(reservationId)
  }

  // Tasks

  /**
   * Registers a task that the caller runs itself. Without a reservation it is registered even at the limit (seed 000).
   * @throws InvalidInputError, TaskIdInUseError, ReservationError, DisposedError; nothing was changed then
   */
  registerTask(input: RegisterTaskInput, reservationId?: string): RunningTaskInfo {
    const fields = parseInput(registerTaskInputSchema(), input, 'input')
    const entry = this.#core.transact(() => this.#admit(this.#toAdmission(fields, fields.id), false, reservationId))
    // What was registered was running, even if its controller had been aborted before.
    return entry.registered
  }

  /**
   * Registers a task and starts its run through the engine; the run's end settles the task. With `isForeground` the
   * caller waits for it in place (as a synchronous call of the task tool does): it takes no slot of the limit.
   * @returns the record of the running task; its id was made from the subagent's name unless the input has one
   * @throws TaskLimitError at the limit, and as `registerTask` does
   */
  launch(input: LaunchTaskInput, runner: Runner, reservationId?: string): RunningTaskInfo {
    const fields = parseInput(launchInputSchema(), input, 'input')
    if (typeof runner !== 'function') throw new InvalidInputError('runner', runner, 'a function')
    return this.#core.transact(() => {
      const id = fields.id ?? this.createTaskId(fields.subagentName)
      const admission = this.#toAdmission(
        { ...fields, abortController: fields.abortController ?? new AbortController() },
        id,
      )
      const { entry, registered } = this.#admit(admission, true, reservationId)
      const host = {
        core: this.#core,
        engine: this.#engine,
        report: this.#report.bind(this),
        append: this.#append.bind(this),
      }
      startRun(host, entry, runner, admission.graceMs)
      return registered
    })
  }

  /** A new task id, `<name>-<random>`, that no retained task holds. */
  createTaskId(subagentName: string): string {
    // An id is a name too, and no name is longer than 512 characters.
    return this.#freshId(subagentName.slice(0, 256), (id) => this.#core.table.get(id) !== undefined)
  }

  /** Ends a task with an output. False, and nothing changed, unless this call completed it. */
  completeTask(id: string, output: OutputObject): boolean {
    return this.#end(id, 'completed', () => ({ type: 'task.complete', output: toOutput(output) }))
  }

  /** Ends a task with an error. False, and nothing changed, unless this call failed it. */
  failTask(id: string, error: string): boolean {
    return this.#end(id, 'failed', () => ({ type: 'task.fail', error: describeFailure(error) }))
  }

  /** Cancels a task: its status first, then the abort of its run, then the event. False when it had ended. */
  cancelTask(id: string): boolean {
    const entry = this.#core.table.get(id)
    return entry !== undefined && this.#core.cancel(entry)
  }

  /** A frozen snapshot of a retained task; undefined for an id that nobody holds (seed 000). */
  getTask(id: string): AsyncTaskInfo | undefined {
    return this.#core.table.get(id)?.record
  }

  /**
   * The task whose id is or starts with `prefix`. An exact id beats longer ones; an empty prefix matches nothing.
   * @returns one task, or the candidates when there are several, or neither
   */
  getTaskByPrefix(prefix: string): { task?: AsyncTaskInfo; candidates?: AsyncTaskInfo[] } {
    if (prefix === '') return {}
    const exact = this.getTask(prefix)
    if (exact !== undefined) return { task: exact }
    const candidates = this.getAllTasks().filter((task) => task.id.startsWith(prefix))
    const [task] = candidates
    if (task === undefined) return {}
    return candidates.length === 1 ? { task } : { candidates }
  }

  /** Every retained task, in the order of registration. */
  getAllTasks(): AsyncTaskInfo[] {
    return Array.from(this.#core.table.entries(), (entry) => entry.record)
  }

  /** The tasks that run, in the order of registration. */
  getRunningTasks(owner?: string): RunningTaskInfo[] {
    return this.#core.table.running(owner).map((entry) => entry.record as RunningTaskInfo)
  }

  /** The ended tasks whose message is owed and not on its way, in the order in which they ended. */
  getPendingNotifications(owner?: string): SettledTaskInfo[] {
    return this.#core.table.owed(owner).map((entry) => entry.record as SettledTaskInfo)
  }

  // Delivery

  /** Notes that the model was told of a task's end. Does nothing for a task that runs, is unknown, or was told of. */
  markNotified(id: string): void {
    this.#core.transact(() => this.#core.send({ type: 'task.notify', taskIds: [id] }))
  }

  /**
   * Takes what is owed into a lease, so that no other message carries it.
   * @param request `owner`: whose (default: everyone's); `exclusive`: refuse while another exclusive lease of the owner is out
   * @returns undefined when nothing is owed, or the owner's exclusive lease is taken
   * @throws InvalidInputError
   */
  lease(request: { readonly owner?: string; readonly exclusive?: boolean } = {}): TaskLease | undefined {
    const { owner, exclusive = false } = parseInput(leaseRequestSchema(), request, 'request')
    const deliveryId = this.#freshId('delivery', (id) => this.#core.table.lease(id) !== undefined)
    return takeLease(this.#core, { deliveryId, isExclusive: exclusive, ...(owner !== undefined && { owner }) })
  }

  /**
   * Hands what an owner has running, owed and on its way to the owner `to`; without one, nobody is told of it.
   * @returns how many tasks that were
   * @throws InvalidInputError; nothing was changed then
   */
  releaseOwner(owner: string, options: { readonly to?: string } = {}): number {
    const { to: heir } = parseInput(ownerReleaseSchema(), { ...options, owner }, 'input')
    const { table } = this.#core
    const count = table.countOf('running', owner) + table.countOf('owed', owner) + table.countOf('leased', owner)
    this.#core.forgetPushers(owner)
    this.#core.transact(() => this.#core.send({ type: 'owner.release', owner, ...(heir !== undefined && { heir }) }))
    return count
  }

  /**
   * Waits for tasks to end. What it returns counts as told; an aborted wait gives it back.
   * @throws the signal's reason when aborted, InvalidInputError
   */
  async waitFor(ids: readonly string[], options: WaitOptions = {}): Promise<WaitResult> {
    return waitForTasks(
      this.#core,
      ids,
      options,
      this.#freshId('wait', (id) => this.#core.table.lease(id) !== undefined),
    )
  }

  /** Resolves when nothing of the owner (of everyone) runs, is owed or is on its way. */
  whenQuiet(owner?: string): Promise<void> {
    return waitUntilQuiet(this.#core, owner)
  }

  /**
   * Answers a question that a task's run has asked (`questions` of its record).
   * @returns false, and nothing changed, when that question is not open
   * @throws InvalidInputError for an answer that does not fit the schema of its question; it stays open then
   */
  answerTask(id: string, questionId: string, answer: TaskAnswer): boolean {
    const entry = this.#core.table.get(id)
    return entry !== undefined && answerQuestion(this.#core, entry, questionId, answer)
  }

  // Output and progress

  /** Says how far a registered task has come. False when it does not run, or the progress is not one. */
  reportProgress(id: string, progress: number | TaskProgress): boolean {
    const entry = this.#core.table.get(id)
    return entry !== undefined && this.#report(entry, progress)
  }

  /** Adds to the output of a registered task. False when it does not run. */
  appendOutput(id: string, text: string): boolean {
    const entry = this.#core.table.get(id)
    return entry !== undefined && this.#append(entry, text)
  }

  /**
   * Reads what a task has appended, from a byte cursor on. Undefined for an unknown task.
   * @throws InvalidInputError for a cursor or a size that is no integer >= 0
   */
  readOutput(id: string, options: ReadOutputOptions = {}): OutputChunk | undefined {
    const { cursor, maxBytes = 16_384 } = parseInput(readOutputOptionsSchema(), options, 'options')
    const entry = this.#core.table.get(id)
    if (entry === undefined) return undefined
    const log = this.#core.peekAttachment(entry)?.log ?? new OutputLog(0)
    return log.read(cursor, maxBytes)
  }

  // Events

  /** Calls `handler` once for each task that completes, after the change. Returns what takes it back. */
  onTaskCompleted(handler: (task: CompletedTaskInfo) => void): () => void {
    return this.#events.on('completed', handler)
  }

  /** Calls `handler` once for each task that fails, after the change. Returns what takes it back. */
  onTaskFailed(handler: (task: FailedTaskInfo) => void): () => void {
    return this.#events.on('failed', handler)
  }

  /** Calls `handler` once for each task that is cancelled, after the change. Returns what takes it back. */
  onTaskCancelled(handler: (task: CancelledTaskInfo) => void): () => void {
    return this.#events.on('cancelled', handler)
  }

  /**
   * Cancels what runs, completes the streams and stops every actor. No callback runs after this call.
   * @returns resolves when every run has ended or its grace has passed
   */
  dispose(): Promise<void> {
    if (this.#disposal !== undefined) return this.#disposal
    const core = this.#core
    const runs = [...core.runs]
    this.#disposal = Promise.all(runs.map((run) => run.settled)).then(() => undefined)
    core.transact(() => {
      for (const entry of core.table.running()) core.cancel(entry)
    })
    core.dispose()
    return this.#disposal
  }

  #end(id: string, status: TerminalStatus, toEvent: () => AsyncTaskEvent): boolean {
    const entry = this.#core.table.get(id)
    if (entry === undefined || hasEnded(entry)) return false
    // Looking at what was given may call code of the host, which may end the task before this call does.
    const event = toEvent()
    if (hasEnded(entry)) return false
    this.#core.transact(() => entry.ref?.send(event))
    return entry.record.status === status
  }

  #admit(
    admission: TaskAdmission,
    isLaunched: boolean,
    reservationId: string | undefined,
  ): { entry: TaskEntry; registered: RunningTaskInfo } {
    const core = this.#core
    if (this.#disposal !== undefined) throw new DisposedError()
    const isLimited = isLaunched && admission.isForeground !== true
    const refusal = core.table.admissionRefusal(admission.id, reservationId, isLimited)
    if (refusal === 'id-in-use') throw new TaskIdInUseError(admission.id)
    if (refusal === 'no-reservation') throw new ReservationError(reservationId ?? '')
    if (refusal === 'no-room') throw new TaskLimitError(core.table.max)
    core.send({ type: 'task.register', admission, isLaunched, ...(reservationId !== undefined && { reservationId }) })
    const entry = core.table.get(admission.id)
    if (entry?.record.status !== 'running') {
      throw new AgentTasksError('NOT_ADMITTED', `Task ${admission.id} was not admitted.`)
    }
    const registered = entry.record
    if (admission.abortController !== undefined) core.link(entry, admission.abortController)
    return { entry, registered }
  }

  #toAdmission(fields: Omit<z.output<ReturnType<typeof launchInputSchema>>, 'id'>, id: string): TaskAdmission {
    const { subagentName, goalPrompt, abortController, timeoutMs } = fields
    return {
      id,
      subagentName,
      goalPrompt,
      owner: fields.owner ?? DEFAULT_OWNER,
      graceMs: fields.graceMs ?? this.#graceMs,
      ...(abortController !== undefined && { abortController }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(fields.isForeground === true && { isForeground: true }),
    }
  }

  #report(entry: TaskEntry, progress: number | TaskProgress): boolean {
    if (entry.ref === undefined) return false
    const given = typeof progress === 'number' ? { progress } : progress
    const checked = progressSchema().safeParse(given)
    if (!checked.success) {
      this.#core.report(
        new InvalidInputError('progress', progress, 'a finite number, or { progress, total?, message? }'),
        {
          source: 'progress',
          taskId: entry.record.id,
        },
      )
      return false
    }
    const told = Object.freeze(checked.data) as TaskProgress
    this.#core.table.noteProgress(entry, told)
    this.#events.emitProgress(entry.record, told)
    return true
  }

  #append(entry: TaskEntry, text: string): boolean {
    if (entry.ref === undefined) return false
    const attachment = this.#core.attachment(entry)
    attachment.log ??= new OutputLog(this.#outputBytes)
    attachment.log.append(text)
    return true
  }

  #freshId(prefix: string, isTaken: (id: string) => boolean): string {
    for (let attempt = 0; attempt < 100; attempt += 1) {
      const id = this.#createId(prefix)
      if (!isTaken(id)) return id
    }
    throw new AgentTasksError(
      'ID_REPEATS',
      `createId(${JSON.stringify(prefix)}) gave a hundred ids that are all in use.`,
    )
  }
}

const hasEnded = (entry: TaskEntry): boolean => entry.ref === undefined

function randomId(prefix: string): string {
  const uuid = globalThis.crypto.randomUUID()
  return `${prefix}-${uuid.slice(0, 8)}${uuid.slice(9, 13)}${uuid.slice(14, 18)}`
}
