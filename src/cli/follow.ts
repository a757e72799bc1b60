/** Follows a task to its end: shows its progress, prints its results, and returns the exit code. */
import type { TaskMessage } from '../client/session.js'
import type { TaskClient, TaskSubmission } from '../client/task-client.js'
import type { Task, TaskCompleteMessage } from '../protocol/command-tasks.js'
import { toolCallResultSchema } from '../protocol/tool-calls.js'
import { ConnectionError } from '../client/client-errors.js'
import { endCode, type ExitCode } from './exit-codes.js'
import { createResultFiles, type ResultFiles } from './result-files.js'
import { createTaskView } from './task-view.js'
import type { Terminal } from './terminal.js'

export interface FollowOptions {
  readonly terminal: Terminal
  readonly isJson: boolean
  /** The answer to the submission, if the task was just submitted. */
  readonly submitted?: TaskSubmission
  /** Stops following when it aborts. The task continues. */
  readonly signal: AbortSignal
  /** Converts an event to a line of JSON. Default: the event as the protocol has it. */
  readonly toJson?: (event: TaskMessage) => unknown
}

/**
 * Follows a task. With text output, prints progress to standard error, and then the results to standard output. With JSON output, prints each event as
 * one line.
 * @throws the errors of `TaskClient.watch`; that of a lost connection names the task
 */
export async function followTask(client: TaskClient, taskId: string, options: FollowOptions): Promise<ExitCode> {
  const { terminal, isJson, signal, submitted, toJson = (event: TaskMessage): unknown => event } = options
  const view = createTaskView(terminal)
  let end: TaskCompleteMessage | undefined
  if (submitted !== undefined && !isJson) view.snapshot(submitted)
  const onSnapshot = (task: Task): void => {
    if (!isJson) view.snapshot(task)
  }
  const connection = client.connection$.subscribe((state) => {
    if (!isJson && state === 'reconnecting') view.note('The connection to the server was lost. Trying again.')
    if (!isJson && state === 'connected') view.note('')
  })
  try {
    for await (const event of client.watch(taskId, { signal, onSnapshot })) {
      if (isJson) terminal.printJson(toJson(event))
      else view.show(event)
      if (event.type === 'task_complete') end = event
    }
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error
    const message = `${error.message} ${taskId} may still run: agent-tasks tasks watch ${taskId}`
    throw new ConnectionError(error.code, message, { cause: error })
  } finally {
    connection.unsubscribe()
    view.end()
  }
  // A watch either ends with `task_complete` or throws, so this is a bug of the client.
  if (end === undefined) throw new Error(`The watch of ${taskId} ended before the task.`)
  if (!isJson) {
    const files = createResultFiles(taskId)
    for await (const text of resultTexts(client, end, files)) terminal.printResult(text)
  }
  return endCode(end.status)
}

/**
 * The texts that the commands returned, the paths of files with their images, and other content as JSON. A result that is too large for an event is read
 * with a separate request.
 */
async function* resultTexts(
  client: TaskClient,
  { taskId, results }: TaskCompleteMessage,
  files: ResultFiles,
): AsyncGenerator<string> {
  for (const [index, { status, result, resultRef }] of results.entries()) {
    if (status !== 'success') continue
    const whole = resultRef === undefined ? result : await client.result(taskId, index)
    if (whole !== undefined) yield* textsOf(whole, files)
  }
}

async function* textsOf(result: unknown, files: ResultFiles): AsyncGenerator<string> {
  const parsed = toolCallResultSchema.safeParse(result)
  if (!parsed.success) yield JSON.stringify(result)
  for (const part of parsed.data?.content ?? []) {
    yield part.type === 'text' && part.text !== undefined
      ? part.text
      : ((await files.save(part)) ?? JSON.stringify(part))
  }
}
