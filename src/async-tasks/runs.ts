/** The runs of launched tasks. Each run starts through the engine. Its end can end only the registration for which it was started (promise A1). */
import { timeoutMessage, type AsyncTaskEvent } from '../../machines/async-task.js'
import type { TaskFailure } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import type { CallContext } from '../isolation/call-context.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { Outcome } from '../engine/engine.js'
import type { RunDurability, RunInput } from '../engine/runner.js'
import { describeFailure, failureOf, toOutput } from '../protocol/outcomes.js'
import type { Operation } from '../protocol/telemetry.js'
import { resultsFor } from '../features/dependencies/dependencies.js'
import { listen } from '../features/families/abort-link.js'
import { RunFiles, storedEnds } from '../features/output/run-files.js'
import { preview } from '../data/preview.js'
import { fromParams } from '../protocol/run-fields.js'
import type { TaskRegistry } from './registry.js'
import { endOperation, launchTraces, runTraces, startOperation } from './run-operation.js'
import { notAgain } from './recovery/interrupted-runs.js'
import type { Persistence } from './recovery/persistence.js'
import { isInterruption, isStop, retryDelay } from './recovery/retrying.js'
import { contextOf, messagesOf } from './run-context.js'
import { currentRuns, noteController, plans, runs, runStates, type RunStart, type RunState } from './run-plan.js'
import { RunScope, type RunAbort, type RunHost } from './run-scope.js'

/** Starts the run of a new task, or continues a run that an earlier process has started. */
export function startRun(host: RunHost, entry: TaskEntry, start: RunStart): void {
  const callContext = host.registry.use(runs).contextOf(entry)
  callContext.runInAsyncScope(() => startInContext(host, entry, start, callContext))
}

function startInContext(host: RunHost, entry: TaskEntry, start: RunStart, callContext: CallContext): void {
  const { runner, graceMs } = start
  const { id } = entry.record
  const scope = new RunScope(host, entry, start)
  const stored = host.registry.persistence && storedRun(scope, host.registry.persistence)
  const operation = host.telemetry && startOperation(host.telemetry, entry, launchTraces.get(entry))
  if (operation?.trace !== undefined) runTraces.set(entry, operation.trace)
  const call = callOf(scope, stored, operation)
  const over = (outcome: Outcome, couldNotStart = false): void => {
    settle(host, entry, { outcome, attempt: scope.attempt, couldNotStart })
    if (operation !== undefined) endOperation(operation, entry, outcome)
  }
  try {
    const run = host.engine.start({
      id,
      graceMs,
      // An engine may start the run later, in another context.
      run: (abort) => callContext.runInAsyncScope(() => call(abort)),
      onLate: (outcome) => reportLate(host.registry, entry, outcome),
    })
    const end = (ended: Outcome): void => {
      scope.close()
      const outcome: Outcome = scope.failure === undefined ? ended : { type: 'threw', reason: scope.failure }
      host.registry.features.run('runEnded', entry, run)
      stored?.files.setSettled(outcome, start.isResumed === true)
      over(outcome)
    }
    host.registry.features.run('runStarted', entry, run, runner, graceMs, start.isResumed === true)
    run.settled.then(end, (reason: unknown) => end({ type: 'threw', reason }))
    // The host's controller had aborted before, so the task was cancelled when it was registered.
    if (entry.ref === undefined) run.abort()
  } catch (reason) {
    over({ type: 'threw', reason }, true)
  }
}

/** What a store keeps of a run. */
interface StoredRun {
  readonly files: RunFiles
  readonly state: RunState
  readonly durability: RunDurability
}

function storedRun({ host, entry, start }: RunScope, persistence: Persistence): StoredRun {
  const { record } = entry
  const files = new RunFiles(persistence.folderOf(record), () => persistence.runOf(entry).program)
  const state: RunState = { runner: start.runner, hasBegun: false, leaving: host.newController(record.id) }
  runStates.set(entry, state)
  const durability: RunDurability = {
    get folder() {
      // A run that asks for its folder has files. They are removed when the run has settled and its end is stored, whichever is later.
      storedEnds.set(entry, () => files.setStored())
      return files.folder
    },
    isResumed: start.isResumed === true,
    isRepeated: start.isRepeated === true,
    get left() {
      return state.leaving.signal
    },
    key: persistence.runOf(entry).key,
    startedAt: record.startedAt ?? record.launchedAt,
    ...omitUndefined({ timeoutMs: record.timeoutMs }),
    saveProgram: (program) => persistence.saveProgram(entry, program),
    get program() {
      return persistence.runOf(entry).program
    },
  }
  return { files, state, durability }
}

/** Returns the function that calls the runner. */
function callOf(
  scope: RunScope,
  stored: StoredRun | undefined,
  operation: Operation | undefined,
): (abort: RunAbort) => unknown {
  const { entry, start } = scope
  const { id, subagentName: subagent, goalPrompt: goal } = entry.record
  const results = omitUndefined({ results: resultsFor(entry) })
  const input: RunInput = Object.freeze({ id, subagent, goal, ...fromParams(start.params), ...results })
  const messages = messagesOf(scope)
  return (abort) => {
    if (stored?.state.leaving.aborted === true) return new Promise(() => undefined)
    if (stored !== undefined) stored.state.hasBegun = true
    // The steps of a suspended durable run never settle. When no step works, the engine need not wait for the run.
    const rested = scope.isDurable ? new Promise<void>((resolve) => (scope.onRest = resolve)) : undefined
    const options = { durability: stored?.durability, trace: operation?.trace, messages }
    const begin = (): unknown => start.runner.run(input, contextOf(scope, abort, options))
    const returned = operation === undefined ? begin() : operation.run(begin)
    return rested === undefined ? returned : Promise.race([returned, rested])
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
  const { excess, offered } = entry.ref.getSnapshot().context
  if (isOverdue && offered !== undefined) return false
  const isOverBudget = excess !== undefined
  const delayMs = retryDelay(plan.retry, entry.record.id, { ...ended, isOverdue, isOverBudget })
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
    if (next !== undefined) {
      noteController(entry)
      listen(registry, next).link(entry)
    }
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
