/**
 * Runs one tool call as a task. In the foreground, the call returns or throws the same as the tool. In the background, it returns a `BackgroundTask`,
 * and the result is delivered later.
 */
import { omitUndefined } from '../../data/omit-undefined.js'
import type { RunContext, RunResult } from '../../engine/runner.js'
import { ToolCallError } from '../../errors.js'
import { toJsonText } from '../../data/json-text.js'
import { toPlainData } from '../../data/plain-data.js'
import type { LaunchTaskInput } from '../../protocol/async-tasks.js'
import { describeFailure } from '../../protocol/outcomes.js'
import { preview } from '../../data/preview.js'
import { refusedInPlace, runInBackground, runInPlace, type TaskCall } from '../../tools/task-runs.js'
import { receiverOf } from '../../tools/call-leases.js'
import type { ToolContext } from '../../tools/tool.js'
import type { BackgroundTask } from './background-types.js'
import { readParameter } from './schemas.js'

/** How the calls of one tool run: whether the model may choose, and which task a call launches. */
export interface ToolTasks {
  readonly isChoice: boolean
  readonly taskOf: (
    input: Pick<LaunchTaskInput, 'goalPrompt' | 'context' | 'timeoutMs'>,
    context: ToolContext,
  ) => TaskCall
}

/** Whether a call has returned, or returns before its tool has ended. What the tool asks of its call then has no effect. */
export type HasLeft = () => boolean

export interface ToolCall<Result> extends ToolContext {
  readonly run: (input: unknown, context: RunContext, hasLeft: HasLeft) => unknown
  /** Which value is the result of a tool that yields values: the last one that it yields, or what it returns. Default: `returned`. */
  readonly resultIs?: 'yielded' | 'returned'
  /** Converts the tool's result to the output of the task. Throws if the result says that the tool has failed. Default: the result is the output. */
  readonly outputOf?: (result: Result, input: unknown, hasLeft: HasLeft) => unknown
  /** A time limit of the tool itself, in ms. In the background it is the deadline of the task, if it is earlier. */
  readonly timeoutMs?: number | undefined
  /**
   * Makes the result of a background call. `task` is missing if the task was refused or stopped; `text` then says why. With `throws`, the call throws
   * the error instead.
   */
  readonly resultOf: (text: string, task?: BackgroundTask) => Result
  readonly throws?: boolean
}

/**
 * Makes a call.
 * @throws the exception of the tool, in the foreground
 * @throws the reason of `context.signal` when it aborts
 */
export async function callTool<Result>(tasks: ToolTasks, given: unknown, call: ToolCall<Result>): Promise<Result> {
  const {
    run,
    resultIs,
    timeoutMs,
    outputOf = (result: Result): unknown => result,
    resultOf,
    throws = false,
    ...context
  } = call
  context.signal?.throwIfAborted()
  const own: { result?: Promise<Result>; hasLeft: boolean } = { hasLeft: false }
  const hasLeft = (): boolean => own.hasLeft
  try {
    const { input, isBackground } = tasks.isChoice ? readParameter(given) : { input: given, isBackground: true }
    own.hasLeft = isBackground
    const runOnce = async (_input: unknown, running: RunContext): Promise<RunResult> => {
      const result = endOf(() => run(input, running, hasLeft), running, resultIs) as Promise<Result>
      // A result that arrives after the task was aborted is ignored.
      await result.finally(() => running.signal.aborted || (own.result = result))
      return (await outputOf(await result, input, hasLeft)) as RunResult
    }
    // `isBound`: the call exists only in this process. After a crash, its task fails with `INTERRUPTED`.
    const runner = { run: runOnce, isBound: true, isUnique: true }
    const plain = toPlainData(input)
    const goalPrompt = toJsonText(plain, { maxChars: 2000 })
    const task = tasks.taskOf(
      { goalPrompt, context: { input: plain }, ...omitUndefined({ timeoutMs: isBackground ? timeoutMs : undefined }) },
      { ...context, hold: receiverOf(context.hold) },
    )
    const { llmContent, metadata, error } = await (isBackground
      ? runInBackground(task, () => Promise.resolve(runner))
      : runInPlace(task, runner).catch(refusedInPlace))
    if (metadata?.['async'] !== false || own.result === undefined) {
      own.hasLeft = true
      if (error !== undefined) throw new ToolCallError(error.type, error.message)
      const { agentId, status } = metadata as { agentId: string } & Pick<BackgroundTask, 'status'>
      const how_to_wait = `${llmContent} The result is delivered when the task has ended. To wait for it, call wait_for_async_tasks.`
      const reference = { task_id: agentId, status, how_to_wait }
      return resultOf(JSON.stringify(reference), reference)
    }
  } catch (error) {
    context.signal?.throwIfAborted()
    if (throws) throw error
    return resultOf(describeFailure(error))
  }
  return own.result
}

/** Returns the result of a tool. If the tool yields values, each is reported as progress. */
async function endOf(
  run: () => unknown,
  context: RunContext,
  resultIs: ToolCall<unknown>['resultIs'] = 'returned',
): Promise<unknown> {
  const result = await run()
  if (typeof result !== 'object' || result === null || !(Symbol.asyncIterator in result)) return result
  const outputs = (result as AsyncIterable<unknown>)[Symbol.asyncIterator]()
  for (let last: unknown, count = 1; ; count += 1) {
    const { done, value } = (await outputs.next()) as IteratorResult<unknown, unknown>
    if (done === true) return resultIs === 'yielded' ? last : value
    last = value
    const isProgress = typeof (Object(value) as { progress?: unknown }).progress === 'number'
    context.report(isProgress ? (value as { progress: number }) : { progress: count, message: preview(value) })
    if (context.signal.aborted) return outputs.return?.()
  }
}
