/**
 * Steps: the stored progress of a durable task. The next run receives the results of steps that have ended, so it does not repeat their work (promise
 * F20).
 *
 * Steps, events and waits are rows in the store, written together with all changes of the same tick. Tasks without `durable` may use steps too: they
 * are kept in memory, for retries.
 */
import { TaskData } from '../../../machines/task-data.js'
import type { TaskAnswer } from '../../../machines/records.js'
import { runOfOwner } from '../../../machines/run-owner.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { elapsedMs } from '../../system/clock.js'
import { AgentTasksError, InvalidInputError } from '../../errors.js'
import type { StoredJson } from '../../store/store.js'
import { preview } from '../../data/preview.js'
import { aName, checkOptions, type OptionTypes } from '../../protocol/option-checks.js'
import type { CheckedLaunch, Feature, FeatureStates } from '../../async-tasks/feature.js'
import { WallTimes } from '../limits/wall-times.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { toStepFailure } from './step-failure.js'
import { checkName, MAX_EVENTS, StepLog, toResult, type Step } from './step-log.js'
import { isWaiting } from '../../../machines/task-status.js'

/** The receiver of an event: one task, or all active tasks of an owner that may wait for events. */
export type EventTarget = { readonly taskId: string } | { readonly owner: string }

/** The notifications of the feature to the current run of a task. */
export interface StepRun {
  /** The step with this key, which was a wait, has ended, and its end is stored. */
  ended(key: string): void
  /** The run has its slot again. */
  resumed(): void
  /** The open questions of the task have changed. */
  asked(): void
  /** The process ends, and the next one goes on with the task. */
  suspended(): void
}

interface Wait {
  readonly entry: TaskEntry
  readonly key: string
}

const FEATURE = 'steps'

const logs = new TaskData<StepLog>()
const waits = new TaskData<Map<string, Wait>>()

export const stepRuns = new TaskData<StepRun>()

export class Steps implements Feature {
  readonly states: FeatureStates = {
    feature: FEATURE,
    prepare: (states) => this.#read(states),
    restore: () => this.#restore(),
  }
  readonly #registry: TaskRegistry
  readonly #times: WallTimes<Wait>
  /** The steps that an earlier process has stored, by task id. */
  #found = new Map<string, StepLog>()

  constructor(registry: TaskRegistry) {
    this.#registry = registry
    this.#times = new WallTimes(
      registry.clock,
      (now) => registry.batch(() => this.#endDue(now)),
      ({ entry, key }) => `${key} of ${entry.record.id}`,
    )
  }

  refusal({ definition }: CheckedLaunch): AgentTasksError | undefined {
    if (definition.durable !== true || this.#registry.persistence !== undefined) return undefined
    return new InvalidInputError('runner.durable', true, 'false for a manager without a store')
  }

  /** Returns the steps of a task that an earlier process has stored. */
  found(taskId: string): StepLog | undefined {
    return this.#found.get(taskId)
  }

  logOf(entry: TaskEntry): StepLog {
    return logs.ensure(entry, () => this.#stored(entry, new StepLog(entry.record.id)))
  }

  /** Begins the wait of a step. When the wait is over, `ended` of the run is called. */
  wait(entry: TaskEntry, { key, dueAt, forMs = Infinity, event }: Step): void {
    const kept = event === undefined ? undefined : this.logOf(entry).takeEvent(event)
    const wait = { entry, key }
    const present = waits.ensure(entry, () => new Map<string, Wait>())
    if (kept !== undefined) this.#end(wait, { result: kept })
    else if (!present.has(key)) {
      present.set(key, wait)
      if (dueAt === undefined) return
      const now = this.#registry.clock.now()
      // If the clock was set back, the wait must still not last longer than `forMs`.
      const at = Math.min(dueAt, now + forMs)
      this.#times.set(wait, at, forMs === Infinity ? undefined : at - now)
    }
  }

  /**
   * Ends the step that waits for the answer to this question, if there is one.
   * @throws INVALID_INPUT for an answer that is too large; the question stays open then
   */
  answered(entry: TaskEntry, questionId: string, answer: TaskAnswer): void {
    const log = logs.get(entry)
    const step = log?.asking(questionId)
    if (log === undefined || step === undefined) return
    const end = toResult(answer, 'answer')
    const excess = log.excessOf(end)
    if (excess !== undefined) {
      throw new InvalidInputError('answer.content', answer.content, `a shorter answer, because this one has ${excess}`)
    }
    log.end(step.key, end)
    this.#continue(entry, step.key)
  }

  fail(entry: TaskEntry, key: string, reason: unknown): void {
    this.#end({ entry, key }, { failure: toStepFailure(reason) })
  }

  /**
   * Sends an event. Resolves when the event is stored. If the promise rejects with anything but StoreError, the event was not sent.
   * @returns the ids of the tasks that received the event
   * @throws INVALID_INPUT for an invalid name, value or target
   * @throws AgentTasksError `EVENTS_FULL`, which names the task
   */
  async emit(event: string, value: unknown, target: EventTarget): Promise<readonly string[]> {
    checkName(event, 'event')
    checkTarget(target)
    const { result: json = 'null' } = toResult(value, 'value')
    const bytes = new TextEncoder().encode(json).length
    if (bytes > MAX_EVENTS.bytes) {
      throw new InvalidInputError('value', value, `a value of at most ${MAX_EVENTS.bytes} bytes of JSON`)
    }
    const entries = this.#addressed(target)
    for (const entry of entries) this.logOf(entry).checkRoom(bytes, this.#waitFor(entry, event) !== undefined)
    this.#registry.batch(() => {
      for (const entry of entries) {
        const wait = this.#waitFor(entry, event)
        if (wait === undefined) this.logOf(entry).keepEvent(event, json)
        else this.#end(wait, { result: json })
      }
    })
    await this.#registry.persistence?.stored()
    return entries.map(({ record }) => record.id)
  }

  /** A queued task whose run waited for its children in an earlier process goes on when they have ended. */
  ended({ record: { owner } }: TaskEntry): void {
    const parent = this.#registry.history.get(runOfOwner(owner) ?? '')
    if (parent !== undefined) this.#goOnWithoutWait(parent)
  }

  ending(entry: TaskEntry): void {
    logs.take(entry)?.drop()
    for (const wait of waits.take(entry)?.values() ?? []) this.#times.delete(wait)
  }

  repeated(entry: TaskEntry, isInterrupted: boolean): void {
    logs.get(entry)?.leave(isInterrupted)
  }

  suspended(entry: TaskEntry): void {
    if (this.#registry.active.has(entry)) stepRuns.get(entry)?.suspended()
  }

  resumed(entry: TaskEntry): void {
    stepRuns.get(entry)?.resumed()
  }

  changed(entry: TaskEntry): void {
    stepRuns.get(entry)?.asked()
  }

  disposed(): void {
    for (const entry of this.#registry.history.entries()) {
      for (const wait of waits.take(entry)?.values() ?? []) this.#times.delete(wait)
    }
  }

  #addressed(target: EventTarget): TaskEntry[] {
    const { active, history, ledger } = this.#registry
    if ('owner' in target) {
      const { owner } = target
      const all = [...ledger.running(owner), ...ledger.queued(owner)]
      return all.filter((entry) => active.has(entry) || logs.get(entry) !== undefined)
    }
    const { taskId } = target
    const entry = history.get(taskId)
    if (entry?.ref !== undefined) return [entry]
    throw new InvalidInputError('target.taskId', taskId, 'the id of a task that has not ended')
  }

  #waitFor(entry: TaskEntry, event: string): Wait | undefined {
    const log = this.logOf(entry)
    return [...(waits.get(entry)?.values() ?? [])].find(({ key }) => log.get(key)?.event === event)
  }

  #endDue(now: number): void {
    for (let wait = this.#times.take(now); wait !== undefined; wait = this.#times.take(now)) {
      const { entry, key } = wait
      if (this.logOf(entry).get(key)?.kind !== 'children') this.#end(wait, {})
      // The run itself ends its wait for children, with the results of those that have ended.
      else if (stepRuns.get(entry) === undefined) this.#registry.send({ type: 'run.works', entry })
    }
  }

  /** Lets a queued task start whose run waited in an earlier process, if the wait is over. */
  #goOnWithoutWait(entry: TaskEntry): void {
    const { record, ref } = entry
    if (ref === undefined || !isWaiting(record.status) || stepRuns.get(entry) !== undefined) return
    if (logs.get(entry)?.waits(record.questions, this.#hasEnded).length === 0) {
      this.#registry.send({ type: 'run.works', entry })
    }
  }

  readonly #hasEnded = (taskId: string): boolean => this.#registry.history.get(taskId)?.ref === undefined

  #end(wait: Wait, end: Pick<Step, 'result' | 'failure'>): void {
    const { entry, key } = wait
    this.#times.delete(wait)
    waits.get(entry)?.delete(key)
    this.logOf(entry).end(key, end)
    this.#continue(entry, key)
  }

  /** Continues the run when the end of the step is stored. */
  #continue(entry: TaskEntry, key: string): void {
    this.afterStored(entry, () => {
      const run = stepRuns.get(entry)
      if (run !== undefined) run.ended(key)
      // The task was queued for this wait: since the last process ended, no run of it has begun.
      else this.#registry.send({ type: 'run.works', entry })
    })
  }

  /** Calls `run` when the changes of a durable task are stored. For other tasks, calls `run` at once. */
  afterStored(entry: TaskEntry, run: () => void): void {
    const { active, persistence } = this.#registry
    if (persistence !== undefined && active.has(entry)) persistence.after({ onStored: run })
    else run()
  }

  #stored(entry: TaskEntry, log: StepLog): StepLog {
    const { active, clock, persistence } = this.#registry
    if (persistence !== undefined && active.has(entry)) {
      const rows = {
        keep: (id: string, data: StoredJson) => persistence.keepState(FEATURE, id, data),
        drop: (id: string) => persistence.dropState(FEATURE, id),
      }
      log.store(rows, () => active.of(entry, elapsedMs(clock)))
    }
    return log
  }

  #read(states: ReadonlyMap<string, StoredJson>): void {
    const { persistence, report } = this.#registry
    for (const [id, row] of states) {
      const { taskId } = row
      const log = (typeof taskId === 'string' && this.#found.get(taskId)) || new StepLog(String(taskId))
      if (log.read(row)) {
        this.#found.set(String(taskId), log)
      } else {
        report(new AgentTasksError('STORE_DAMAGED', `The stored step ${preview(id)} is malformed and was dropped.`), {
          source: 'store',
        })
        persistence?.dropState(FEATURE, id)
      }
    }
    for (const log of this.#found.values()) log.order()
  }

  /** Called when the tasks are restored. Continues their waits, ends waits that are due, and drops the steps of ended tasks. */
  #restore(): void {
    const { active, clock, history } = this.#registry
    const now = clock.now()
    for (const [taskId, log] of this.#found) {
      const entry = history.get(taskId)
      if (entry?.ref === undefined || !active.has(entry)) {
        this.#dropRows(log)
        continue
      }
      logs.set(entry, this.#stored(entry, log))
      for (const step of log.waits(entry.record.questions, this.#hasEnded)) {
        // A question needs no timer and no event: `answered` finds its step.
        if (step.kind !== 'question') this.wait(entry, step)
      }
      this.#goOnWithoutWait(entry)
    }
    this.#found.clear()
    this.#endDue(now)
  }

  #dropRows(log: StepLog): void {
    const { persistence } = this.#registry
    log.store({ keep: () => undefined, drop: (id) => persistence?.dropState(FEATURE, id) }, () => 0)
    log.drop()
  }
}

const targetTypes: OptionTypes<{ taskId?: string; owner?: string }> = { taskId: aName, owner: aName }

/** @throws INVALID_INPUT */
function checkTarget(target: EventTarget): void {
  checkOptions(target, targetTypes, ['target'])
  if ('owner' in target === 'taskId' in target) {
    throw new InvalidInputError('target', target, 'an object with either taskId or owner')
  }
}

export const steps = (registry: TaskRegistry): Steps => new Steps(registry)
