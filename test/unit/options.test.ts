/** Every public function that takes options refuses an unknown name, a wrong type and a missing function when it is called. */
import { createAgentTasks, AsyncTaskAutoTrigger, AsyncTaskManager, AsyncTaskReminderService } from 'agent-tasks'
import { processRunner } from 'agent-tasks'
import { connectInstance, createTaskClient } from 'agent-tasks/client'
import { createInspector } from 'agent-tasks/inspect'
import { startMcpHttpServer, startMcpStdioServer } from 'agent-tasks/mcp'
import { InstanceManager, localInstance, mcpInstance, startTaskServer, TaskManager } from 'agent-tasks/server'
import { exploreRaces } from 'agent-tasks/testing'
import {
  createCheckAsyncTasksTool,
  createSubmitCommandsTool,
  createTaskTool,
  createWaitForAsyncTasksTool,
} from 'agent-tasks/tools'
import { describe, expect, it } from 'vitest'
import { InvalidInputError } from '../../src/errors.js'
import { createInProcessEngine, createTaskCommands } from '../../src/parts.js'

type Options = Readonly<Record<string, unknown>>

const getAsyncTaskManager = () => new AsyncTaskManager()
const tool = { name: 'add', execute: () => 3 }
const noTurn = () => undefined

/** Calls each function with correct options and those of a test; nothing is started before they are checked. */
const entries: Record<string, (options: Options) => unknown> = {
  createAgentTasks: (options) => createAgentTasks(options),
  AsyncTaskManager: (options) => new AsyncTaskManager(options),
  'AsyncTaskManager.restore': (options) => AsyncTaskManager.restore([], options),
  AsyncTaskReminderService: (options) => new AsyncTaskReminderService(new AsyncTaskManager(), options),
  AsyncTaskAutoTrigger: (options) => {
    const manager = new AsyncTaskManager()
    return new AsyncTaskAutoTrigger(manager, new AsyncTaskReminderService(manager), () => true, noTurn, options)
  },
  createInProcessEngine: (options) => createInProcessEngine(options),
  createTaskCommands: (options) => createTaskCommands({ getAsyncTaskManager, ...options }),
  processRunner: (options) => processRunner({ command: 'true', ...options }),
  createTaskTool: (options) => createTaskTool({ getAsyncTaskManager, resolveSubagent: noTurn, ...options }),
  createCheckAsyncTasksTool: (options) => createCheckAsyncTasksTool({ getAsyncTaskManager, ...options }),
  createWaitForAsyncTasksTool: (options) => createWaitForAsyncTasksTool({ getAsyncTaskManager, ...options }),
  createSubmitCommandsTool: (options) => {
    const taskManager = new TaskManager({ instances: new InstanceManager() })
    return createSubmitCommandsTool({ getAsyncTaskManager, taskManager, ...options })
  },
  TaskManager: (options) => new TaskManager({ instances: new InstanceManager(), ...options }),
  InstanceManager: (options) => new InstanceManager(options),
  localInstance: (options) => localInstance({ id: 'calc', tools: [tool], ...options }),
  mcpInstance: (options) => mcpInstance({ id: 'files', command: 'no-such-program', ...options }),
  startTaskServer: (options) => startTaskServer(options),
  startMcpStdioServer: (options) => startMcpStdioServer(options),
  startMcpHttpServer: (options) => startMcpHttpServer(options),
  createTaskClient: (options) => createTaskClient({ url: 'http://127.0.0.1:1', ...options }),
  connectInstance: (options) => connectInstance('http://127.0.0.1:1', { tools: [tool], ...options }),
  createInspector: (options) => createInspector(options),
  exploreRaces: (options) => exploreRaces({ setup: noTurn, actors: { a: [noTurn] }, ...options }),
}

const errorOf = async (act: () => unknown): Promise<unknown> => {
  try {
    await act()
  } catch (error) {
    return error
  }
  return undefined
}

describe.each(Object.entries(entries))('%s', (_name, call) => {
  it('refuses an option that it does not know', async () => {
    const error = await errorOf(() => call({ somethingElse: true }))
    expect(error).toBeInstanceOf(InvalidInputError)
    expect((error as Error).message).toMatch(/^options\.somethingElse: got true, expected one of the names .+\.$/)
  })
})

describe.each([
  ['createAgentTasks', 'maxAsyncTask', 'maxAsyncTasks'],
  ['createAgentTasks', 'subAgents', 'subagents'],
  ['createAgentTasks', 'triggerAgentTurns', 'triggerAgentTurn'],
  ['AsyncTaskManager', 'gracems', 'graceMs'],
  ['AsyncTaskAutoTrigger', 'coalesce', 'coalesceMs'],
  ['TaskManager', 'maxQueueSizes', 'maxQueueSize'],
  ['processRunner', 'arg', 'args'],
  ['localInstance', 'Tools', 'tools'],
  ['mcpInstance', 'startTimeout', 'startTimeoutMs'],
  ['startTaskServer', 'instance', 'instances'],
  ['startTaskServer', 'prot', 'port'],
  ['startMcpStdioServer', 'subagent', 'subagents'],
  ['createTaskClient', 'websocket', 'WebSocket'],
  ['createTaskClient', 'tokens', 'token'],
  ['connectInstance', 'ID', 'id'],
  ['exploreRaces', 'invariant', 'invariants'],
])('%s', (name, given, nearest) => {
  it(`given ${given}, names ${nearest}`, async () => {
    const message = `options.${given}: got undefined, expected a known name; the nearest is ${nearest}.`
    expect(await errorOf(() => entries[name]?.({ [given]: undefined }))).toHaveProperty('message', message)
  })
})

it.each<[string, Options, string]>([
  [
    'createAgentTasks',
    { isAgentBusy: true, triggerAgentTurn: noTurn },
    'isAgentBusy: got true, expected a function, or an Obs',
  ],
  [
    'createAgentTasks',
    { isAgentBusy: () => true, triggerAgentTurn: 'turn' },
    'triggerAgentTurn: got "turn", expected a fun',
  ],
  [
    'createAgentTasks',
    { subagents: { a: { description: 'x' } } },
    'subagents.a: got {"description":"x"}, expected a fun',
  ],
  ['createAgentTasks', { subagents: [() => 'x'] }, 'subagents: got an array of 1, expected an object.'],
  ['createAgentTasks', { resolveSubagent: {} }, 'resolveSubagent: got {}, expected a function.'],
  [
    'createAgentTasks',
    { taskManager: {} },
    'taskManager: got {}, expected a TaskManager, or the tasks of a cluster with submitTask, cancelTask, getTask.',
  ],
  [
    'createAgentTasks',
    { autoTrigger: { pollms: 5 } },
    'autoTrigger.pollms: got 5, expected a known name; the nearest is pol',
  ],
  ['createAgentTasks', { settings: null }, 'settings: got null, expected an object.'],
  ['createAgentTasks', { owner: '' }, 'owner: got "", expected a string of at least 1 character.'],
  ['createAgentTasks', { onError: 'log' }, 'onError: got "log", expected a function.'],
  ['AsyncTaskManager', { clock: Date }, 'clock: got a function, expected a clock with now, setTimeout, clearTimeout.'],
  ['AsyncTaskManager', { engine: {} }, 'engine: got {}, expected an engine with start.'],
  ...['AsyncTaskManager', 'TaskManager', 'InstanceManager'].flatMap((name) =>
    [null, 1, {}, { next: 1 }].map((inspect): [string, Options, string] => [name, { inspect }, 'inspect: got ']),
  ),
  [
    'AsyncTaskManager',
    { machines: { tasks: {} } },
    'machines.tasks: got "(not shown)", expected a known name; the nearest is task.',
  ],
  ['AsyncTaskManager', { notifyCancelled: 'yes' }, 'notifyCancelled: got "yes", expected true or false.'],
  ['createTaskTool', { resolveSubagent: undefined }, 'resolveSubagent: got undefined, expected a function.'],
  ['createTaskTool', { getAsyncTaskManager: new AsyncTaskManager() }, 'getAsyncTaskManager: got {'],
  [
    'createSubmitCommandsTool',
    { taskManager: undefined },
    'taskManager: got undefined, expected a TaskManager, or the tasks of a cluster with',
  ],
  ['TaskManager', { instances: [] }, 'instances: got an empty array, expected an InstanceManager with'],
  ['localInstance', { id: 5 }, 'id: got 5, expected a string of at least 1 character.'],
  [
    'localInstance',
    { tools: [{ name: 'a', run: noTurn }] },
    'tools[0]: got {"name":"a"}, expected a tool: { name, execute, inputSchema?: a zod schema }.',
  ],
  ['mcpInstance', { args: 'a b' }, 'args: got "a b", expected an array.'],
  ['mcpInstance', { env: { A: 1 } }, 'env.A: got 1, expected a string.'],
  ['connectInstance', { tools: tool }, 'tools: got {"name":"add"}, expected an array.'],
  ['connectInstance', { token: 5 }, 'token: got "(not shown)", expected a string.'],
  ['createTaskClient', { url: undefined }, 'url: got undefined, expected a string.'],
  ['createTaskClient', { reconnect: true }, 'reconnect: got true, expected an object, or false.'],
  [
    'createTaskClient',
    { reconnect: { maxAttempt: 3 } },
    'reconnect.maxAttempt: got 3, expected a known name; the nearest is',
  ],
  [
    'startTaskServer',
    { instances: [{ id: 'a' }] },
    'instances[0]: got {"id":"a"}, expected an instance with listTools',
  ],
  ['startMcpStdioServer', { subagents: { a: 5 } }, 'subagents.a: got 5, expected a function, or { run }.'],
])('%s given a wrong value: %j', async (name, options, message) => {
  const error = await errorOf(() => entries[name]?.(options))
  expect(error).toBeInstanceOf(InvalidInputError)
  expect((error as Error).message).toContain(`options.${message}`)
})

it.each<[string, Options, string]>([
  [
    'createAgentTasks',
    { autoTrigger: { pollMs: 0 } },
    'Setting autoTrigger.pollMs: got 0, expected a number of milliseconds >= 1.',
  ],
  ['createAgentTasks', { maxMessageChars: '500' }, 'Setting maxMessageChars: got "500", expected an integer >= 200.'],
  ['createTaskClient', { heartbeatMs: 0 }, 'Setting heartbeatMs: got 0, expected a number >= 1.'],
  ['connectInstance', { heartbeatMs: '9' }, 'Setting heartbeatMs: got "9", expected a number >= 1.'],
  ['localInstance', { closeGraceMs: NaN }, 'Setting closeGraceMs: got NaN, expected a number >= 0.'],
  ['mcpInstance', { startTimeoutMs: 0 }, 'Setting startTimeoutMs: got 0, expected a number >= 1.'],
])('%s given a number out of its range: %j', async (name, options, message) => {
  expect(await errorOf(() => entries[name]?.(options))).toMatchObject({ code: 'INVALID_SETTING', message })
})

it.each([{ id: 'a' }, { id: 'a', command: 'x', url: 'http://127.0.0.1:1' }])(
  'an MCP instance has one location: %j',
  async (options) => {
    await expect(mcpInstance(options as never)).rejects.toThrow('expected exactly one of command, url and transport.')
  },
)

it('a wrong option of setupAsyncTaskAutoTrigger is refused, and the callbacks stay', async () => {
  const tasks = createAgentTasks()
  expect(() => tasks.setupAsyncTaskAutoTrigger(undefined as never, noTurn)).toThrow('isAgentBusy: got undefined')
  expect(() => tasks.setupAsyncTaskAutoTrigger(() => false, undefined as never)).toThrow(
    'triggerAgentTurn: got undefined',
  )
  const texts: string[] = []
  tasks.setupAsyncTaskAutoTrigger(
    () => false,
    (text) => void texts.push(text),
  )
  expect(() => tasks.setupAsyncTaskAutoTrigger(() => true, 5 as never)).toThrow('triggerAgentTurn: got 5')
  const manager = tasks.getAsyncTaskManager()
  manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'x', abortController: new AbortController() })
  manager.completeTask('a', { final_message: 'done' })
  await manager.onIdle()
  expect(texts).toHaveLength(1)
  await tasks.dispose()
})

it('a client refuses the options of list and watch that it does not know', async () => {
  const client = createTaskClient({ url: 'http://127.0.0.1:1' })
  await expect(client.list({ state: 'running' } as never)).rejects.toThrow('options.state: got')
  const watch = client.watch('a', { onSnapshots: noTurn } as never)
  expect(() => watch[Symbol.asyncIterator]()).toThrow('the nearest is onSnapshot.')
  await client.close()
})
