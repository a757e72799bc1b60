/** The runs of launched tasks. Each run starts through the engine. Its end can end only the registration for which it was started (promise A1). */
import { timeoutMessage, type AsyncTaskEvent } from '../../machines/async-task.js'
import type { ActiveTaskInfo, ProgramFacts, TaskFailure } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import type { CallContext } from '../isolation/call-context.js'
import type { IsolatedController } from '../isolation/isolated-controller.js'
import { unawaited } from '../isolation/unawaited.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { ChildTaskInput, RunChildren } from '../engine/children.js'
import type { Engine, Outcome } from '../engine/engine.js'
import { reportMethods } from '../engine/report-methods.js'
import type { RunContext, RunDurability, RunInput, Runner } from '../engine/runner.js'
import type { WaitForOptions } from '../engine/steps.js'
import { QuestionWithdrawnError } from '../errors.js'
import { sessionSchema } from '../protocol/async-tasks.js'
import { spendSchema } from '../protocol/budget.js'
import { describeFailure, failureOf, toOutput } from '../protocol/outcomes.js'
import { Inbox, inboxes, NO_MESSAGES } from '../features/questions/inbox.js'
import { resultsFor } from '../features/dependencies/dependencies.js'
import { parseInput } from '../protocol/parse.js'
import { endedError, type CurrentRun } from '../features/families/families.js'
import { listen } from '../features/families/abort-link.js'
import { RunFiles, storedEnds } from '../features/output/run-files.js'
import { preview } from '../data/preview.js'
import type { Telemetry } from '../protocol/telemetry.js'
import { appendOutput } from '../features/output/output-stream.js'
import { reportField } from '../features/output/reports.js'
import type { TaskRegistry } from './registry.js'
import { askQuestion } from '../features/questions/questions.js'
import { endOperation, launchTraces, runTraces, startOperation } from './run-operation.js'
import { notAgain } from './recovery/interrupted-runs.js'
import { isInterruption, isStop, retryDelay } from './recovery/retrying.js'
import { currentRuns, plans, runs, runStates, type RunStart, type RunState } from './run-plan.js'
import { overError, StepsOfRun } from '../features/steps/steps-of-run.js'
import { wrapUpSignal } from '../features/limits/wrap-up.js'

export interface RunHost {
  readonly registry: TaskRegistry
  readonly engine: Engine
  readonly telemetry: Telemetry | undefined
  /** How much of a task's output is kept, in bytes. */
  readonly outputBytes: number
  launchChild(parent: TaskEntry, input: ChildTaskInput, runner: Runner | undefined): ActiveTaskInfo
  childrenOf(parent: TaskEntry, run: CurrentRun): RunChildren
  newController(taskId: string): IsolatedController
}

/** Starts the run of a new task, or continues a run that an earlier process has started. */
export function startRun(host: RunHost, entry: TaskEntry, start: RunStart): void {
  const callContext = host.registry.use(runs).contextOf(entry)
  callContext.runInAsyncScope(() => startInContext(host, entry, start, callContext))
}

function startInContext(host: RunHost, entry: TaskEntry, start: RunStart, callContext: CallContext): void {
  const { runner, graceMs, params, previous, isResumed = false } = start
  const { registry, engine } = host
  const { persistence } = registry
  const files = new RunFiles(persistence?.folderOf(entry.record), () => persistence?.runOf(entry).program)
  const state: RunState | undefined = persistence && {
    runner,
    hasBegun: false,
    leaving: host.newController(entry.record.id),
  }
  if (state !== undefined) runStates.set(entry, state)
  const durability: RunDurability | undefined = persistence && {
    get folder() {
      // A run that asks for its folder has files. They are removed when the run has settled and its end is stored, whichever is later.
      storedEnds.set(entry, () => files.setStored())
      return files.folder
    },
    isResumed,
    isRepeated: start.isRepeated === true,
    get left() {
      return state?.leaving.signal
    },
    key: persistence.runOf(entry).key,
    startedAt: entry.record.startedAt ?? entry.record.launchedAt,
    ...omitUndefined({ timeoutMs: entry.record.timeoutMs }),
    saveProgram: (program) => persistence.saveProgram(entry, program),
    get program() {
      return persistence.runOf(entry).program
    },
  }
  const { id, subagentName, goalPrompt, attempt = 1, kind } = entry.record
  const input: RunInput = { id, subagentName, goalPrompt, ...omitUndefined({ params, results: resultsFor(entry) }) }
  const messages = runner.takesMessages === true ? inboxes.ensure(entry, () => new Inbox()).open() : NO_MESSAGES
  const operation = host.telemetry && startOperation(host.telemetry, entry, launchTraces.get(entry))
  if (operation?.trace !== undefined) runTraces.set(entry, operation.trace)
  let own: StepsOfRun | undefined
  let rest: () => void = () => undefined
  const stepsWith = (abort: { readonly signal: AbortSignal }): StepsOfRun => {
    // An earlier run of the task must have no more steps, because its steps would take events of the current run.
    if (own === undefined && (!isCurrent(entry, attempt) || entry.ref === undefined)) throw overError(entry)
    return (own ??= new StepsOfRun(registry, entry, {
      signal: abort.signal,
      isCurrent: () => isCurrent(entry, attempt),
      ticket: runner.releasesSlot === true ? plans.get(entry)?.ticket : undefined,
      onRest: () => rest(),
    }))
  }
  const methods = reportMethods((field, value) => {
    if (isCurrent(entry, attempt)) reportField(registry, entry, field, value)
  })
  const otherFields = (abort: { readonly signal: AbortSignal }): Omit<RunContext, keyof typeof methods> => ({
    get signal() {
      return abort.signal
    },
    taskId: id,
    get owner() {
      return entry.record.owner
    },
    attempt,
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
      if (isCurrent(entry, attempt) && entry.ref !== undefined) registry.spend(entry, spent)
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
    ...omitUndefined({ durability, previous }),
    ...(operation && { trace: operation.trace }),
  })
  const call = (abort: { readonly signal: AbortSignal }): unknown => {
    if (state?.leaving.aborted === true) return new Promise(() => undefined)
    if (state !== undefined) state.hasBegun = true
    // The steps of a suspended durable run never settle. When no step works, the engine need not wait for the run.
    const rested = runner.durable === true ? new Promise<void>((resolve) => (rest = resolve)) : undefined
    const begin = (): unknown => runner.run(input, Object.assign(otherFields(abort), methods))
    const returned = operation === undefined ? begin() : operation.run(begin)
    return rested === undefined ? returned : Promise.race([returned, rested])
  }
  const over = (outcome: Outcome, couldNotStart = false): void => {
    settle(host, entry, { outcome, attempt, couldNotStart })
    if (operation !== undefined) endOperation(operation, entry, outcome)
  }
  try {
    const run = engine.start({
      id,
      graceMs,
      // An engine may start the run later, in another context.
      run: (abort) => callContext.runInAsyncScope(() => call(abort)),
      onLate: (outcome) => reportLate(registry, entry, outcome),
    })
    const end = (ended: Outcome): void => {
      own?.close()
      const outcome: Outcome = own?.failure === undefined ? ended : { type: 'threw', reason: own.failure }
      registry.features.run('runEnded', entry, run)
      files.setSettled(outcome, isResumed)
      over(outcome)
    }
    registry.features.run('runStarted', entry, run, runner, graceMs)
    run.settled.then(end, (reason: unknown) => end({ type: 'threw', reason }))
    // The host's controller had aborted before, so the task was cancelled when it was registered.
    if (entry.ref === undefined) run.abort()
  } catch (reason) {
    over({ type: 'threw', reason }, true)
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

export const isStopping = (ref: NonNullable<TaskEntry['ref']>): boolean =>
  ref.getSnapshot().matches({ active: 'stopping' })

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
  if (registry.isDisposed) {
    if (outcome.type === 'returned') registry.complete(entry, toOutput(outcome.value))
    return
  }
  const stops = stopsOf(entry, ended)
  if (repeat(host, entry, { ...ended, stops })) return
  // Converted first, because reading the returned value may call code of the run, and that code may end the task.
  const event: AsyncTaskEvent =
    outcome.type === 'returned'
      ? { type: 'task.complete', output: toOutput(outcome.value) }
      : { type: 'task.fail', ...failureOfRun(outcome, stops) }
  registry.batch(() => {
    const { ref } = entry
    if (ref === undefined) reportLate(registry, entry, outcome)
    else ref.send(event)
    registry.send({ type: 'slot.release', entry })
  })
}

/** How many times in a row the task was stopped with the process of its run, including this end. 0 if this run has ended otherwise. */
function stopsOf(entry: TaskEntry, { outcome }: EndedRun): number {
  if (!isStop(outcome) || (entry.ref !== undefined && isStopping(entry.ref))) return 0
  return (plans.get(entry)?.stops ?? 0) + 1
}

/** Queues the task again if its retry policy says so. Returns whether it has queued the task. */
function repeat(host: RunHost, entry: TaskEntry, ended: EndedRun & { readonly stops: number }): boolean {
  const { registry } = host
  const plan = plans.get(entry)
  if (plan?.retry === undefined || entry.ref === undefined) return false
  const isOverdue = isStopping(entry.ref)
  const isOverBudget = entry.ref.getSnapshot().context.excess !== undefined
  const delayMs = retryDelay(plan.retry, { ...ended, isOverdue, isOverBudget })
  if (delayMs === undefined) return false
  const { outcome, stops } = ended
  const keepsAttempt = stops > 0
  const reported = outcome.type === 'returned' ? undefined : failureOfRun(outcome).error
  const error = isOverdue ? timeoutMessage(entry.record.timeoutMs ?? 0, reported) : (reported ?? '')
  registry.batch(() => {
    storedEnds.take(entry)?.()
    currentRuns.take(entry)
    registry.features.run('repeated', entry, isInterruption(outcome))
    const { id, abortController } = entry.record
    const next = abortController?.signal.aborted === true ? host.newController(id) : undefined
    const { ticket } = plan
    const start = { ...plan.start, isRepeated: keepsAttempt }
    plans.set(entry, { ...plan, start, stops })
    if (keepsAttempt) registry.persistence?.setStops(entry, stops)
    registry.persistence?.setDelay(entry, delayMs)
    registry.send({
      type: 'task.requeue',
      entry,
      ticket,
      delayMs,
      graceMs: start.graceMs,
      error,
      abortController: next,
      keepsAttempt,
    })
    if (next !== undefined) listen(registry, next).link(entry)
  })
  return true
}

function failureOfRun(outcome: Exclude<Outcome, { type: 'returned' }>, stops = 0): TaskFailure {
  if (outcome.type === 'threw') {
    const failure = failureOf(outcome.reason)
    return { ...failure, error: `${failure.error}${notAgain(stops)}` }
  }
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
