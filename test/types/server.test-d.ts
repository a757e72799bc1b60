/** The types of `agent-tasks/server`: compiled by `npm run types`, never run. */
import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import {
  InstanceManager,
  localInstance,
  instanceTool,
  mcpInstance,
  resolveServerConfig,
  startTaskServer,
  TaskManager,
  handleMCPRequest,
  type Instance,
  type InstanceEntry,
  type MCPRequest,
  type MCPResponse,
  type TaskManagerOptions,
  type TaskServerOptions,
  type ServerConfig,
  type Task,
  type TaskCompleteMessage,
  type TaskProgressMessage,
} from 'agent-tasks/server'
import type { Store } from 'agent-tasks/store'
import type {
  CommandRecovery,
  CommandTaskMachines,
  SubmitOptions,
  SubmitResult,
} from '../../src/command-tasks/options.js'
import { AgentTasksError } from '../../src/errors.js'
import type {
  ConnectHandler,
  DisconnectHandler,
  InstanceState,
  OnInstanceError,
  InstanceManagerOptions,
} from '../../src/command-tasks/instances/instance-manager.js'
import type { InstanceConnection, InstanceEnd } from '../../src/command-tasks/instances/instance.js'
import type { EndStatus, SubmitErrorCode, TaskError } from '../../src/protocol/command-tasks.js'
import type { MCPInstanceOptions } from '../../src/command-tasks/instances/mcp-instance.js'
import type { MCPRequestContext } from '../../src/command-tasks/instances/mcp-request.js'

declare const task: Task
declare const complete: TaskCompleteMessage
declare const manager: TaskManager

export function aTaskIsNarrowedByItsStatus(): void {
  switch (task.status) {
    case 'queued':
    case 'running':
      expectTypeOf(task.completedAt).toEqualTypeOf<undefined>()
      expectTypeOf(task.error).toEqualTypeOf<undefined>()
      break
    case 'completed':
      expectTypeOf(task.completedAt).toEqualTypeOf<number>()
      expectTypeOf(task.error).toEqualTypeOf<undefined>()
      break
    case 'failed':
    case 'cancelled':
      expectTypeOf(task.error).toEqualTypeOf<TaskError>()
      break
    default:
      expectTypeOf(task).toBeNever()
  }
  // @ts-expect-error only a task that failed or was cancelled has one
  expectTypeOf(task.error.code)
}

export function anEndIsNarrowedByItsStatus(): void {
  expectTypeOf(complete.status).toEqualTypeOf<EndStatus>()
  if (complete.status === 'completed') expectTypeOf(complete.error).toEqualTypeOf<undefined>()
  else expectTypeOf(complete.error).toEqualTypeOf<TaskError>()
}

export function aSubmitIsAcceptedOrRefused(): void {
  const answer = manager.submitTask({ task_name: 'x', commands: [{ tool_name: 'add', args: { a: 1 } }] })
  if ('error' in answer) {
    expectTypeOf(answer.code).toExtend<string>()
    // @ts-expect-error a refused task has no id
    expectTypeOf(answer.taskId)
  } else expectTypeOf(answer.taskId).toEqualTypeOf<string>()
  // @ts-expect-error a task has a name
  manager.submitTask({ commands: [] })
  // @ts-expect-error a command has a tool
  manager.submitTask({ task_name: 'x', commands: [{ args: {} }] })
}

export function listenersAreTypedByTheirEvent(): void {
  manager.on('progress', (message) => expectTypeOf(message).toEqualTypeOf<TaskProgressMessage>())
  manager.on('complete', (message) => expectTypeOf(message).toEqualTypeOf<TaskCompleteMessage>())
  // @ts-expect-error no such event
  manager.on('done', () => undefined)
}

export function aToolOfAnInstanceKnowsItsInputFromItsSchema(): void {
  const add = instanceTool({
    name: 'add',
    inputSchema: z.object({ a: z.number(), b: z.number().default(0) }),
    execute: (input, { signal }) => {
      expectTypeOf(input).toEqualTypeOf<{ a: number; b: number }>()
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      return input.a + input.b
    },
  })
  const instances = new InstanceManager()
  expectTypeOf(instances.connect(localInstance({ id: 'calc', tools: [add] })).isConnected).toEqualTypeOf<boolean>()
  // @ts-expect-error a tool has a name
  localInstance({ id: 'calc', tools: [{ execute: () => 1 }] })
  // @ts-expect-error an MCP server is started or reached somehow
  void mcpInstance({ id: 'x' })
  // @ts-expect-error commands run on instances
  new TaskManager({})
}

export async function theServerIsConfiguredByName(): Promise<void> {
  expectTypeOf(resolveServerConfig({})).toEqualTypeOf<ServerConfig>()
  await using server = await startTaskServer({ tasks: { wsPort: 0 } })
  expectTypeOf(server.close({ drainMs: 1 })).toEqualTypeOf<Promise<void>>()
  // @ts-expect-error a port is a number
  void startTaskServer({ tasks: { wsPort: '3400' } })
}

export function errorsHaveFields(error: unknown): void {
  if (!(error instanceof AgentTasksError)) return
  expectTypeOf(error.code).toExtend<string>()
  expectTypeOf(error.instanceId).toEqualTypeOf<string | undefined>()
  expectTypeOf(error.field).toEqualTypeOf<string | undefined>()
  expectTypeOf(error.owner).toEqualTypeOf<string | undefined>()
}

export function tasksMayBeStored(): void {
  expectTypeOf<TaskManagerOptions['store']>().toEqualTypeOf<Store | undefined>()
  expectTypeOf<TaskManagerOptions['instanceGraceMs']>().toEqualTypeOf<number | undefined>()
  expectTypeOf<TaskServerOptions['store']>().toEqualTypeOf<Store | undefined>()
  expectTypeOf(manager.recovered).toEqualTypeOf<CommandRecovery>()
  expectTypeOf(manager.recovered.queued).toEqualTypeOf<readonly string[]>()
  expectTypeOf<TaskManager['submitTask']>().parameter(1).toEqualTypeOf<SubmitOptions | undefined>()
  // @ts-expect-error it is the path in a configuration, and the store in code
  void startTaskServer({ store: 'tasks.db' })
}

export function whatASignatureMentionsHasAName(): void {
  expectTypeOf<Instance['connection']>().toEqualTypeOf<InstanceConnection | undefined>()
  expectTypeOf<Parameters<Instance['close']>[0]>().toEqualTypeOf<InstanceEnd | undefined>()
  expectTypeOf<InstanceEntry['state']>().toEqualTypeOf<InstanceState>()
  expectTypeOf<InstanceManagerOptions['onError']>().toEqualTypeOf<OnInstanceError | undefined>()
  expectTypeOf<InstanceManager['onConnect']>().parameter(0).toEqualTypeOf<ConnectHandler>()
  expectTypeOf<InstanceManager['onDisconnect']>().parameter(0).toEqualTypeOf<DisconnectHandler>()
  expectTypeOf<TaskManagerOptions['machines']>().toEqualTypeOf<CommandTaskMachines | undefined>()
  expectTypeOf(mcpInstance).parameter(0).toEqualTypeOf<MCPInstanceOptions>()
  expectTypeOf(handleMCPRequest).parameters.toEqualTypeOf<[MCPRequest, MCPRequestContext]>()
  expectTypeOf(handleMCPRequest).returns.resolves.toEqualTypeOf<MCPResponse>()
  expectTypeOf<Extract<SubmitResult, { code: unknown }>['code']>().toEqualTypeOf<SubmitErrorCode>()
}

export function anAnswerHasAResultOrAnError(answer: MCPResponse): void {
  if (answer.error === undefined) expectTypeOf(answer.result.isError).toEqualTypeOf<boolean | undefined>()
  else expectTypeOf(answer.error.code).toEqualTypeOf<number>()
  // @ts-expect-error there may be an error instead
  expectTypeOf(answer.result.content)
}
