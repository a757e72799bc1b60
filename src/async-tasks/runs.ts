/** The runs of launched tasks: each starts through the engine, and can end only its own registration (A1). */
import type { AsyncTaskEvent } from '../../machines/async-task.js'
import type { FailedTaskInfo, TaskFailure, TaskProgress } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import type { Engine, Outcome } from '../engine/engine.js'
import type { RunContext, RunDurability, RunInput, Runner } from '../engine/runner.js'
import { describeFailure, failureOf, toOutput } from '../protocol/outcomes.js'
import { RunFiles } from './run-files.js'
import { preview } from '../preview.js'
import type { Operation, Telemetry } from '../protocol/telemetry.js'
import { reportMisnamedFields } from './misnamed-fields.js'
import type { TaskRegistry } from './registry.js'
import { askQuestion } from './questions.js'

/** What a run uses of the manager. */
export interface RunHost {
  readonly registry: TaskRegistry
  readonly engine: Engine
  readonly telemetry: Telemetry | undefined
  report(entry: TaskEntry, progress: number | TaskProgress): void
  append(entry: TaskEntry, text: string): void
}

/** A run that is to be started. */
export interface RunStart {
  readonly runner: Runner
  /** How long it may take to stop after an abort, in ms. */
  readonly graceMs: number
  /** Its further input. */
  readonly params?: RunInput['params'] | undefined
  /** An earlier process started it, and it goes on. */
  readonly isResumed?: boolean
}

/** Starts the run of a task that has just been admitted, or goes on with the one that an earlier process started. */
export function startRun(host: RunHost, entry: TaskEntry, start: RunStart): void {
  const { runner, graceMs, params, isResumed = false } = start
  const { registry, engine } = host
  const { persistence } = registry
  const files = new RunFiles(persistence?.folderOf(entry.record))
  const durability: RunDurability | undefined = persistence && {
    get folder() {
      // Its files go when its run has settled and its end has been stored, whichever is later.
      registry.attachment(entry).removeFiles = () => files.setStored()
      return files.folder
    },
    isResumed,
    saveProgram: (program) => persistence.setProgram(entry, program),
  }
  const { id, subagentName, goalPrompt, attempt = 1 } = entry.record
  const input: RunInput = { id, subagentName, goalPrompt, ...(params && { params }) }
  const context = (signal: AbortSignal): RunContext => ({
    signal,
    taskId: id,
    get owner() {
      return entry.record.owner
    },
    attempt,
    report: (progress) => host.report(entry, progress),
    append: (text) => host.append(entry, text),
    ask: (question) => askQuestion(registry, entry, question),
    ...(durability && { durability }),
  })
  const operation = host.telemetry && startOperation(host.telemetry, registry, entry)
  try {
    const run = engine.start({
      id,
      graceMs,
      run: ({ signal }) =>
        operation === undefined
          ? runner(input, context(signal))
          : operation.run(() => runner(input, { ...context(signal), trace: operation.trace })),
      onLate: (outcome) => reportLate(registry, entry, outcome),
    })
    const end = (outcome: Outcome): void => {
      registry.runs.delete(run)
      files.setSettled(outcome, isResumed)
      settle(registry, entry, outcome)
      if (operation !== undefined) endOperation(operation, entry)
    }
    registry.attachment(entry).run = run
    registry.runs.add(run)
    run.settled.then(end, (reason: unknown) => end({ type: 'threw', reason }))
    // The registered controller had aborted: the task is cancelled already.
    if (entry.ref === undefined) run.abort()
  } catch (reason) {
    settle(registry, entry, { type: 'threw', reason })
    if (operation !== undefined) endOperation(operation, entry)
  }
}

function startOperation(telemetry: Telemetry, registry: TaskRegistry, entry: TaskEntry): Operation {
  const { record } = entry
  return telemetry.start({
    type: 'invoke_agent',
    name: record.subagentName,
    parent: registry.peekAttachment(entry)?.trace,
    taskId: record.id,
    attempt: record.attempt ?? 1,
    input: record.goalPrompt,
  })
}

function endOperation(operation: Operation, { record }: TaskEntry): void {
  if (record.status === 'completed') operation.end({ output: record.output })
  else if (record.status === 'cancelled') operation.end({ errorType: 'cancelled' })
  else if (record.status === 'failed') {
    operation.end({ errorType: failureType(record), error: record.error })
  } else operation.end()
}

/** A low number of kinds, as metrics need them. */
function failureType({ launchedAt, completedAt, timeoutMs, errorCode, errorName }: FailedTaskInfo): string {
  if (timeoutMs !== undefined && completedAt - launchedAt >= timeoutMs) return 'timeout'
  return errorCode ?? errorName ?? '_OTHER'
}

function settle(registry: TaskRegistry, entry: TaskEntry, outcome: Outcome): void {
  // Reading the returned value may call code of the run, which may end the task: read it first.
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

function failureOfRun(outcome: Exclude<Outcome, { type: 'returned' }>): TaskFailure {
  if (outcome.type === 'threw') return failureOf(outcome.reason)
  return {
    error:
      outcome.type === 'skipped'
        ? 'The run was aborted before it started.'
        : 'The run did not stop when it was aborted.',
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
  const message = `The run of task ${id} returned ${late} after the task had ended as ${status}: dropped.`
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
