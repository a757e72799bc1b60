/** A task that a client watches: its events, and promises for some of them. */
import type { TaskClient, TaskCompleteMessage, TaskMessage } from '../../src/client/index.js'

export interface WatchedTask {
  readonly taskId: string
  readonly events: TaskMessage[]
  /** Resolves with the complete event of the task. */
  readonly ended: Promise<TaskCompleteMessage>
  /** Awaits a promise. Rejects if the task ends first. */
  before<T>(what: Promise<T>): Promise<T>
  /** Resolves when the command with this index runs. */
  runs(index: number): Promise<void>
}

/** Watches a task. */
export function watchTask(client: TaskClient, taskId: string): WatchedTask {
  const events: TaskMessage[] = []
  let onEvent: () => void = () => undefined
  const ended = (async (): Promise<TaskCompleteMessage> => {
    for await (const event of client.watch(taskId)) {
      events.push(event)
      onEvent()
    }
    const last = events.at(-1)
    if (last?.type !== 'task_complete') throw new Error('The watch ended without an end.')
    return last
  })()
  const tooEarly = ended.then((end): never => {
    throw new Error(`The task ended before: ${JSON.stringify(end)}`)
  })
  tooEarly.catch(() => undefined)
  const before = <T>(what: Promise<T>): Promise<T> => Promise.race([what, tooEarly])
  const isRunning = (index: number): boolean =>
    events.some((event) => event.type === 'task_progress' && event.commandIndex === index && event.status === 'running')
  return {
    taskId,
    events,
    ended,
    before,
    runs: async (index) => {
      while (!isRunning(index)) await before(new Promise<void>((resolve) => (onEvent = resolve)))
    },
  }
}
