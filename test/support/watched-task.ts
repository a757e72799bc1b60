/** A task that a client watches: what it was told, and what can be waited for. */
import type { TaskClient, TaskCompleteMessage, TaskEvent } from '../../src/client/index.js'

export interface WatchedTask {
  readonly taskId: string
  readonly events: TaskEvent[]
  /** Its end, when the client was told. */
  readonly ended: Promise<TaskCompleteMessage>
  /** Waits for something that must come before the end; rejects when the end comes first. */
  before<T>(what: Promise<T>): Promise<T>
  /** Resolves when a command has been told to run. */
  runs(index: number): Promise<void>
}

/** Watches a task from now on. */
export function watchTask(client: TaskClient, taskId: string): WatchedTask {
  const events: TaskEvent[] = []
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
    ...{ taskId, events, ended, before },
    runs: async (index) => {
      while (!isRunning(index)) await before(new Promise<void>((resolve) => (onEvent = resolve)))
    },
  }
}
