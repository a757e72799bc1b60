/** The operation (span) of a run for telemetry. */
import { TaskData } from '../../machines/task-data.js'
import type { FailedTaskInfo } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import { endedAs, wasStopped } from '../../machines/task-status.js'
import type { Outcome } from '../engine/engine.js'
import { errorTypeOf, type Operation, type Telemetry, type TraceContext } from '../protocol/telemetry.js'

/** Begins the operation of a run. Its parent is the operation in which the task was launched. */
export function startOperation(telemetry: Telemetry, entry: TaskEntry, parent: TraceContext | undefined): Operation {
  const { id, subagentName, goalPrompt, attempt = 1, kind, command } = entry.record
  const work =
    kind === 'command'
      ? ({ type: 'execute_tool', input: command } as const)
      : ({ type: 'invoke_agent', input: goalPrompt } as const)
  return telemetry.start({ ...work, name: subagentName, taskId: id, attempt, parent })
}

/** Ends the operation with the end of the task. If the task will be run again, the operation ends with the outcome of this run. */
export function endOperation(operation: Operation, { record }: TaskEntry, outcome: Outcome): void {
  if (endedAs(record, 'succeeded')) operation.end({ output: record.output })
  else if (endedAs(record, 'failed')) operation.end({ errorType: failureType(record), error: record.error })
  else if (wasStopped(record.status)) operation.end({ errorType: 'cancelled' })
  else operation.end({ errorType: outcome.type === 'threw' ? errorTypeOf(outcome.reason) : '_OTHER' })
}

/** Returns a value from a small set, because each value becomes a metric of its own. */
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

/** The span of the latest run of each task. */
export const runTraces = new TaskData<TraceContext>()

/** The span in which each task was launched. */
export const launchTraces = new TaskData<TraceContext>()
