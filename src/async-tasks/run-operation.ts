/** The run of a task as an operation of telemetry. */
import { PerTask } from '../../machines/per-task.js'
import type { FailedTaskInfo } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import type { Outcome } from '../engine/engine.js'
import { errorTypeOf, type Operation, type Telemetry, type TraceContext } from '../protocol/telemetry.js'

/** Begins it, as a part of what launched the task. */
export function startOperation(telemetry: Telemetry, entry: TaskEntry, parent: TraceContext | undefined): Operation {
  const { id, subagentName, goalPrompt, attempt = 1, kind, command } = entry.record
  const work =
    kind === 'command'
      ? ({ type: 'execute_tool', input: command } as const)
      : ({ type: 'invoke_agent', input: goalPrompt } as const)
  return telemetry.start({ ...work, name: subagentName, taskId: id, attempt, parent })
}

/** Ends it as its task has ended; if its task goes on with another run, as the run has. */
export function endOperation(operation: Operation, { record }: TaskEntry, outcome: Outcome): void {
  if (record.status === 'completed') operation.end({ output: record.output })
  else if (record.status === 'cancelled') operation.end({ errorType: 'cancelled' })
  else if (record.status === 'failed') operation.end({ errorType: failureType(record), error: record.error })
  else operation.end({ errorType: outcome.type === 'threw' ? errorTypeOf(outcome.reason) : '_OTHER' })
}

/** A low number of kinds, as metrics need them. */
function failureType({
  launchedAt,
  startedAt = launchedAt,
  completedAt,
  timeoutMs,
  ...failure
}: FailedTaskInfo): string {
  if (timeoutMs !== undefined && completedAt - startedAt >= timeoutMs) return 'timeout'
  return failure.errorCode ?? failure.errorName ?? '_OTHER'
}

/** The span that launched a task. */
export const launchTraces = new PerTask<TraceContext>()
