/** REST requests to a node or to the address of a cluster. */
import { setTimeout as pause } from 'node:timers/promises'

interface Request extends RequestInit {
  readonly headers?: Record<string, string>
}

export interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

export async function call(url: string, path: string, init: Request = {}): Promise<Answer> {
  const response = await fetch(url + path, { ...init, headers: { connection: 'close', ...init.headers } })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

export const post = (
  url: string,
  path: string,
  body: unknown = {},
  headers: Record<string, string> = {},
): Promise<Answer> =>
  call(url, path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  })

/** A task with one command for a watched instance (cluster-instance.ts). */
export const taskFor = (instanceId: string, tool: 'do' | 'hold', args: { mark: string } & Record<string, unknown>) => ({
  task_name: args.mark,
  task_intention: 'to be run',
  instanceId,
  commands: [{ tool_name: tool, intention: '', args }],
})

/** Submits a task that must be accepted. Returns its id. */
export async function submit(url: string, task: ReturnType<typeof taskFor>): Promise<string> {
  const { status, body } = await post(url, '/tasks', task)
  if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
  return String(body['taskId'])
}

export interface SeenTask {
  readonly status: string
  readonly error?: { readonly code: string; readonly message: string }
}

export async function taskOf(url: string, taskId: string): Promise<SeenTask> {
  const { body } = await call(url, `/tasks/${taskId}`)
  if (body['task'] === undefined) throw new Error(`There is no task ${taskId}: ${JSON.stringify(body)}`)
  return body['task'] as SeenTask
}

/** Waits until `look` returns a value, for as long as the test may take. */
export async function until<T>(look: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    await pause(20)
  }
}

/** Waits until a task has ended. */
export const untilEnded = (url: string, taskId: string): Promise<SeenTask> =>
  until(async () => {
    const task = await taskOf(url, taskId)
    return ['completed', 'failed', 'cancelled'].includes(task.status) && task
  })

/** Returns the number of the node that the instance `w` is connected to. Each node is asked. */
export async function holderOf(urls: readonly string[]): Promise<number> {
  for (const [index, url] of urls.entries()) {
    const metrics = await (await fetch(`${url}/metrics`)).text()
    if (metrics.includes('agent_tasks_connections{kind="worker"} 1')) return index
  }
  throw new Error('No node has the instance.')
}
