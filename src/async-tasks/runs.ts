/** Runs of launched tasks: started through the engine, and each able to settle only its own registration (A1). */
import type { AsyncTaskEvent } from '../../machines/async-task.js'
import type { TaskProgress } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-table.js'
import type { Engine, Outcome } from '../engine/engine.js'
import type { RunContext, Runner } from '../engine/runner.js'
import { describeFailure, toOutput } from '../protocol/outcomes.js'
import { preview } from '../preview.js'
import type { RegistryCore } from './core.js'
import { askQuestion } from './questions.js'

/** The part of the manager that a run reports to. */
export interface RunHost {
  readonly core: RegistryCore
  readonly engine: Engine
  report(entry: TaskEntry, progress: number | TaskProgress): void
  append(entry: TaskEntry, text: string): void
}

/** Starts the run of a task that was just admitted. */
export function startRun(host: RunHost, entry: TaskEntry, runner: Runner, graceMs: number): void {
  const { core, engine } = host
  const { id, subagentName, goalPrompt } = entry.record
  const context = (signal: AbortSignal): RunContext => ({
    signal,
    taskId: id,
    get owner() {
      return entry.record.owner
    },
    report: (progress) => host.report(entry, progress),
    append: (text) => host.append(entry, text),
    ask: (question) => askQuestion(core, entry, question),
  })
  try {
    const run = engine.start({
      id,
      graceMs,
      run: ({ signal }) => runner({ id, subagentName, goalPrompt }, context(signal)),
      onLate: (outcome) => reportLate(core, entry, outcome),
    })
    const end = (outcome: Outcome): void => {
      core.runs.delete(run)
      settle(core, entry, outcome)
    }
    core.attachment(entry).run = run
    core.runs.add(run)
    run.settled.then(end, (reason: unknown) => end({ type: 'threw', reason }))
    // An observer of the registration, or a controller that was aborted before it, may have cancelled it already.
    if (entry.ref === undefined) run.abort()
  } catch (reason) {
    settle(core, entry, { type: 'threw', reason })
  }
}

function settle(core: RegistryCore, entry: TaskEntry, outcome: Outcome): void {
  // Looking at what the run gave may call code of its own, which may end the task before this does.
  const event: AsyncTaskEvent =
    outcome.type === 'returned'
      ? { type: 'task.complete', output: toOutput(outcome.value) }
      : { type: 'task.fail', error: describeOutcome(outcome) }
  core.transact(() => {
    const { ref } = entry
    if (ref === undefined) reportLate(core, entry, outcome)
    else ref.send(event)
    core.send({ type: 'slot.release', slot: entry.slot })
  })
}

function describeOutcome(outcome: Exclude<Outcome, { type: 'returned' }>): string {
  if (outcome.type === 'threw') return describeFailure(outcome.reason)
  return outcome.type === 'skipped'
    ? 'The run was aborted before it started.'
    : 'The run did not stop when it was asked to.'
}

function reportLate(core: RegistryCore, entry: TaskEntry, outcome: Outcome): void {
  const said =
    outcome.type === 'returned' && outcome.value !== undefined
      ? `a result (${preview(outcome.value)})`
      : outcome.type === 'threw' && !isAbort(outcome.reason)
        ? `an error (${describeFailure(outcome.reason)})`
        : undefined
  if (said === undefined || core.isDisposed) return
  const { id, status } = entry.record
  core.report(new Error(`The run of task ${id} returned ${said} after the task had ended as ${status}: dropped.`), {
    source: 'late-result',
    taskId: id,
  })
}

function isAbort(reason: unknown): boolean {
  try {
    return reason instanceof Error && (reason.name === 'AbortError' || reason.name === 'TimeoutError')
  } catch {
    return false
  }
}
