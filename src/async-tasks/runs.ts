/** The runs of launched tasks. Each run starts through the engine. Its end can end only the registration for which it was started (promise A1). */
import { timeoutMessage, type AsyncTaskEvent } from '../../machines/async-task.js'
import type { ActiveTaskInfo, ProgramFacts, TaskFailure } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import { unawaited } from '../callbacks/unawaited.js'
import { defined } from '../defined.js'
import type { ChildTaskInput, RunChildren } from '../engine/children.js'
import type { Engine, Outcome } from '../engine/engine.js'
import type { RunContext, RunDurability, RunInput, Runner } from '../engine/runner.js'
import type { WaitForOptions } from '../engine/steps.js'
import { QuestionWithdrawnError } from '../errors.js'
import { sessionSchema } from '../protocol/async-tasks.js'
import { spendSchema } from '../protocol/budget.js'
import { describeFailure, failureOf, toOutput } from '../protocol/outcomes.js'
import { Inbox, inboxes, NO_MESSAGES } from './questions/inbox.js'
import { resultsFor } from './dependencies/dependencies.js'
import { parseInput } from '../protocol/parse.js'
import { endedError, type CurrentRun } from './families/families.js'
import { listen } from './families/abort-link.js'
import { RunFiles, storedEnds } from './output/run-files.js'
import { preview } from '../text/preview.js'
import type { Telemetry } from '../protocol/telemetry.js'
import { reportMisnamedFields } from './misnamed-fields.js'
import { appendOutput } from './output/output-stream.js'
import { reportProgress } from './output/progress.js'
import type { TaskRegistry } from './registry.js'
import { askQuestion } from './questions/questions.js'
import { endOperation, launchTraces, runTraces, startOperation } from './run-operation.js'
import { isInterruption, retryDelay } from './recovery/retrying.js'
import { currentRuns, plans, runs, type RunStart } from './run-plan.js'
import { overError, StepsOfRun } from './steps/steps-of-run.js'
import { wrapUpSignal } from './limits/wrap-up.js'

/** What runs need from the manager. */
export interface RunHost {
  readonly registry: TaskRegistry
  readonly engine: Engine
  readonly telemetry: Telemetry | undefined
  /** How much of a task's output is kept, in bytes. */
  readonly outputBytes: number
  launchChild(parent: TaskEntry, input: ChildTaskInput, runner: Runner | undefined): ActiveTaskInfo
  childrenOf(parent: TaskEntry, run: CurrentRun): RunChildren
  newController(taskId: string): AbortController
}

/** Starts the run of a new task, or continues a run that an earlier process has started. */
export function startRun(host: RunHost, entry: TaskEntry, start: RunStart): void {
  const { runner, graceMs, params, previous, isResumed = false } = start
  const { registry, engine } = host
  const { persistence } = registry
  const { unsettled } = registry.use(runs)
  const files = new RunFiles(persistence?.folderOf(entry.record), () => persistence?.programOf(entry))
  const durability: RunDurability | undefined = persistence && {
    get folder() {
      // A run that asks for its folder has files. They are removed when the run has settled and its end is stored, whichever is later.
      storedEnds.set(entry, () => files.setStored())
      return files.folder
    },
    isResumed,
    key: persistence.keyOf(entry),
    startedAt: entry.record.startedAt ?? entry.record.launchedAt,
    saveProgram: (program) => persistence.saveProgram(entry, program),
    get program() {
      return persistence.programOf(entry)
    },
  }
  const { id, subagentName, goalPrompt, attempt = 1, kind } = entry.record
  const input: RunInput = { id, subagentName, goalPrompt, ...defined({ params, results: resultsFor(entry) }) }
  const messages = runner.takesMessages === true ? inboxes.ensure(entry, () => new Inbox()).open() : NO_MESSAGES
  const operation = host.telemetry && startOperation(host.telemetry, entry, launchTraces.get(entry))
  if (operation?.trace !== undefined) runTraces.set(entry, operation.trace)
  let own: StepsOfRun | undefined
  const stepsWith = (abort: { readonly signal: AbortSignal }): StepsOfRun => {
    // An earlier run of the task must have no more steps, because its steps would take events of the current run.
    if (own === undefined && (!isCurrent(entry, attempt) || entry.ref === undefined)) throw overError(entry)
    return (own ??= new StepsOfRun(registry, entry, {
      signal: abort.signal,
      isCurrent: () => isCurrent(entry, attempt),
      ticket: runner.releasesSlot === true ? plans.get(entry)?.ticket : undefined,
    }))
  }
  const context = (abort: { readonly signal: AbortSignal }): RunContext => ({
    get signal() {
      return abort.signal
    },
    taskId: id,
    get owner() {
      return entry.record.owner
    },
    attempt,
    report: (progress) => {
      if (isCurrent(entry, attempt)) reportProgress(registry, entry, progress)
    },
    append: (text) => {
      if (isCurrent(entry, attempt)) appendOutput(entry, text, host.outputBytes)
    },
    ask: (question, options) => {
      if (!isCurrent(entry, attempt)) return Promise.reject(new QuestionWithdrawnError(entry.record.id))
      if (runner.durable !== true) return askQuestion(registry, entry, question, options)
      return unawaited(() => stepsWith(abort).ask(question, options))
    },
    messages,
    setSession: (sessionId, options = {}) => {
      const session = parseInput(sessionSchema(), { ...options, id: sessionId }, 'session')
      if (isCurrent(entry, attempt)) registry.send({ type: 'task.note', entry, fields: { session } })
    },
    spend: (amount) => {
      const spent = parseInput(spendSchema(), amount, 'amount')
      if (isCurrent(entry, attempt) && entry.ref !== undefined) {
        registry.send({ type: 'task.spend', entry, amount: spent })
      }
    },
    launch: (child, childRunner) => {
      if (!isCurrent(entry, attempt)) throw endedError(id)
      const launch = (): ActiveTaskInfo => host.launchChild(entry, child, childRunner)
      return runner.durable === true ? stepsWith(abort).launch(launch) : launch()
    },
    get children() {
      const children = host.childrenOf(entry, { signal: abort.signal, isCurrent: () => isCurrent(entry, attempt) })
      return runner.durable === true ? stepsWith(abort).children(children) : children
    },
    step: (name, work, options) => unawaited(() => stepsWith(abort).step(name, work, options)),
    sleep: (time, options) => unawaited(() => stepsWith(abort).sleep(time, options)),
    waitFor: <T>(event: string, options?: WaitForOptions) =>
      unawaited(() => stepsWith(abort).waitFor(event, options) as Promise<T | undefined>),
    get wrapUp() {
      return wrapUpSignal(registry, entry)
    },
    ...(kind !== undefined && {
      setProgram: (fields: ProgramFacts) => registry.send({ type: 'task.note', entry, fields }),
    }),
    ...defined({ durability, previous }),
    ...(operation && { trace: operation.trace }),
  })
  try {
    const run = engine.start({
      id,
      graceMs,
      run: (abort) =>
        operation === undefined
          ? runner.run(input, context(abort))
          : operation.run(() => runner.run(input, context(abort))),
      onLate: (outcome) => reportLate(registry, entry, outcome),
    })
    const end = (ended: Outcome): void => {
      own?.close()
      const outcome: Outcome = own?.failure === undefined ? ended : { type: 'threw', reason: own.failure }
      unsettled.delete(run)
      files.setSettled(outcome, isResumed)
      settle(host, entry, { outcome, attempt, couldNotStart: false })
      if (operation !== undefined) endOperation(operation, entry, outcome)
    }
    currentRuns.set(entry, run)
    unsettled.add(run)
    run.settled.then(end, (reason: unknown) => end({ type: 'threw', reason }))
    // The host's controller had aborted before, so the task was cancelled when it was registered.
    if (entry.ref === undefined) run.abort()
  } catch (reason) {
    const outcome: Outcome = { type: 'threw', reason }
    settle(host, entry, { outcome, attempt, couldNotStart: true })
    if (operation !== undefined) endOperation(operation, entry, outcome)
  }
}

export function startPlanned(host: RunHost, entry: TaskEntry): void {
  const plan = plans.get(entry)
  if (plan === undefined) host.registry.send({ type: 'slot.release', entry })
  else startStored(host, entry, plan.start)
}

/** Starts the run of a task after its start was stored. In the meantime the task may have ended or reached a limit. */
export function startStored(host: RunHost, entry: TaskEntry, start: RunStart): void {
  const { registry } = host
  if (entry.ref === undefined || registry.isDisposed) registry.send({ type: 'slot.release', entry })
  else if (isStopping(entry.ref)) {
    settle(host, entry, { outcome: { type: 'skipped' }, attempt: entry.record.attempt ?? 1, couldNotStart: false })
  } else startRun(host, entry, start)
}

const isStopping = (ref: NonNullable<TaskEntry['ref']>): boolean => ref.getSnapshot().matches({ active: 'stopping' })

/** Whether this is the current run of a task. What an earlier run reports is ignored. */
const isCurrent = ({ record }: TaskEntry, attempt: number): boolean => (record.attempt ?? 1) === attempt

interface EndedRun {
  readonly outcome: Outcome
  readonly attempt: number
  readonly couldNotStart: boolean
}

function settle(host: RunHost, entry: TaskEntry, ended: EndedRun): void {
  const { registry } = host
  const { outcome } = ended
  if (repeat(host, entry, ended)) return
  // Converted first, because reading the returned value may call code of the run, and that code may end the task.
  const event: AsyncTaskEvent =
    outcome.type === 'returned'
      ? { type: 'task.complete', output: toOutput(outcome.value) }
      : { type: 'task.fail', ...failureOfRun(outcome) }
  registry.batch(() => {
    const { ref } = entry
    if (ref === undefined) reportLate(registry, entry, outcome)
    else ref.send(event)
    registry.send({ type: 'slot.release', entry })
  })
  reportMisnamedFields(registry, entry)
}

/** Queues the task again if its retry policy says so. Returns whether it has queued the task. */
function repeat(host: RunHost, entry: TaskEntry, ended: EndedRun): boolean {
  const { registry } = host
  const plan = plans.get(entry)
  if (plan?.retry === undefined || entry.ref === undefined) return false
  const isOverdue = isStopping(entry.ref)
  const isOverBudget = entry.ref.getSnapshot().context.excess !== undefined
  const delayMs = retryDelay(plan.retry, { ...ended, isOverdue, isOverBudget })
  if (delayMs === undefined) return false
  const { outcome } = ended
  const reported = outcome.type === 'returned' ? undefined : failureOfRun(outcome).error
  const error = isOverdue ? timeoutMessage(entry.record.timeoutMs ?? 0, reported) : (reported ?? '')
  registry.batch(() => {
    storedEnds.take(entry)?.()
    currentRuns.take(entry)
    registry.repeated(entry, isInterruption(outcome))
    const { id, abortController } = entry.record
    const next = abortController?.signal.aborted === true ? host.newController(id) : undefined
    const { ticket, start } = plan
    registry.persistence?.setDelay(entry, delayMs)
    registry.send({
      type: 'task.requeue',
      entry,
      ticket,
      delayMs,
      graceMs: start.graceMs,
      error,
      abortController: next,
    })
    if (next !== undefined) listen(registry, next).link(entry)
  })
  return true
}

function failureOfRun(outcome: Exclude<Outcome, { type: 'returned' }>): TaskFailure {
  if (outcome.type === 'threw') return failureOf(outcome.reason)
  return {
    error:
      outcome.type === 'skipped'
        ? 'The run was aborted before it started.'
        : 'The run was aborted, but did not stop within its grace period.',
  }
}

function reportLate(registry: TaskRegistry, entry: TaskEntry, outcome: Outcome): void {
  const late =
    outcome.type === 'returned' && outcome.value !== undefined
      ? `a result (${preview(outcome.value)})`
      : outcome.type === 'threw' && !isAbort(outcome.reason)
        ? `an error (${describeFailure(outcome.reason)})`
        : undefined
  if (late === undefined || registry.isDisposed) return
  const { id, status } = entry.record
  const message = `The run of task ${id} returned ${late} after the task had ended as ${status}. It was dropped.`
  const cause = outcome.type === 'threw' ? { cause: outcome.reason } : undefined
  registry.report(new Error(message, cause), { source: 'late-result', taskId: id })
}

function isAbort(reason: unknown): boolean {
  try {
    return reason instanceof Error && (reason.name === 'AbortError' || reason.name === 'TimeoutError')
  } catch {
    return false
  }
}
