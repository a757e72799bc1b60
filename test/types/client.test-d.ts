/** The types of `agent-tasks/client`: compiled by `npm run types`, never run. */
import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import type { AgentTasksError } from 'agent-tasks/client'
import {
  connectInstance,
  createTaskClient,
  instanceTool,
  type ConnectedInstance,
  type Task,
  type TaskClient,
  type TaskMessage,
} from 'agent-tasks/client'
import type {
  ConnectionErrorCode,
  ConnectionError,
  TaskExpiredError,
  TaskServerError,
} from '../../src/client/client-errors.js'
import type { TaskError } from '../../src/protocol/command-tasks.js'

declare const client: TaskClient

export async function aWatchIsNarrowedByTypeAndStatus(): Promise<void> {
  for await (const event of client.watch('a')) {
    expectTypeOf(event).toEqualTypeOf<TaskMessage>()
    if (event.type === 'task_progress') expectTypeOf(event.commandIndex).toEqualTypeOf<number>()
    else if (event.status === 'completed') expectTypeOf(event.error).toEqualTypeOf<undefined>()
    else expectTypeOf(event.error).toEqualTypeOf<TaskError>()
    // @ts-expect-error progress has no summary
    expectTypeOf(event.summary)
  }
}

export async function theClientSaysWhatItAnswers(): Promise<void> {
  expectTypeOf(await client.submit({ task_name: 'x', commands: [] })).toEqualTypeOf<{
    taskId: string
    queuePosition: number
  }>()
  expectTypeOf(await client.get('a')).toEqualTypeOf<Task | undefined>()
  expectTypeOf((await client.list({ status: 'running' })).nextCursor).toEqualTypeOf<string | undefined>()
  expectTypeOf(await client.cancel('a')).toEqualTypeOf<boolean>()
  // @ts-expect-error no such status
  void client.list({ status: 'done' })
  // @ts-expect-error a task has commands
  void client.submit({ task_name: 'x' })
  void client.submit({ task_name: 'x', commands: [] }, { idempotencyKey: 'k' })
  // @ts-expect-error the key is a string
  void client.submit({ task_name: 'x', commands: [] }, { idempotencyKey: 1 })
  // @ts-expect-error a client has a server
  createTaskClient({ token: 'x' })
  expectTypeOf<ConnectionError['code']>().toEqualTypeOf<ConnectionErrorCode>()
  expectTypeOf<ConnectionError | TaskExpiredError | TaskServerError>().toExtend<AgentTasksError>()
  expectTypeOf<TaskClient | ConnectedInstance>().toExtend<AsyncDisposable>()
}

export function aWorkerToolKnowsItsInputFromItsSchema(): void {
  const tool = instanceTool({
    name: 'open',
    inputSchema: z.object({ url: z.string() }),
    execute: (input) => {
      expectTypeOf(input).toEqualTypeOf<{ url: string }>()
      // @ts-expect-error the schema has no such field
      expectTypeOf(input.href)
    },
  })
  expectTypeOf(
    connectInstance('http://127.0.0.1:3300', { id: 'x', tools: [tool] }),
  ).resolves.toExtend<ConnectedInstance>()
  void connectInstance('http://127.0.0.1:3300', {
    tools: [tool],
    onConnection: (isConnected) => expectTypeOf(isConnected).toEqualTypeOf<boolean>(),
  })
  // @ts-expect-error a worker has tools
  void connectInstance('http://127.0.0.1:3300', { id: 'x' })
}
