/** The actions of the page: on the real thing, with the manager's own checks. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { AsyncTaskManager, createAgentTasks, type RunContext } from 'agent-tasks'
import { InstanceManager, instanceTool, localInstance, TaskManager } from 'agent-tasks/server'
import { startPage } from './test-page.js'
import { ownerOfRun } from '../../../src/parts.js'

/** A run that ends when the test ends it. */
function createHeld() {
  const runs: { readonly context: RunContext; finish(output: object): void }[] = []
  const run = {
    run: (_input: unknown, context: RunContext) =>
      new Promise<Record<string, unknown>>((resolve, reject) => {
        runs.push({ context, finish: (output) => resolve(output as Record<string, unknown>) })
        context.signal.addEventListener('abort', () => reject(context.signal.reason as Error), { once: true })
      }),
    takesMessages: true,
  }
  return { run, runs }
}

async function withHost(maxAsyncTasks = 5) {
  const manager = new AsyncTaskManager(maxAsyncTasks)
  return { manager, ...createHeld(), ...(await startPage({ tasks: manager })) }
}

async function withInstance() {
  const instances = new InstanceManager()
  instances.connect(
    localInstance({
      id: 'calc',
      tools: [
        instanceTool({
          name: 'add',
          inputSchema: z.object({ a: z.number(), b: z.number() }),
          execute: ({ a, b }) => a + b,
        }),
        instanceTool({
          name: 'hang',
          execute: (_input, { signal }) =>
            new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
        }),
      ],
    }),
  )
  const taskManager = new TaskManager({ instances, abortGraceMs: 0 })
  onTestFinished(async () => {
    await taskManager.dispose()
    await instances.dispose()
  })
  return { instances, taskManager, ...(await startPage({ taskManager })) }
}

const idOf = (key: unknown): string => String(key).replace(/^\w+:/, '')

describe('cancel', () => {
  it('cancels a task with its reason, once', async () => {
    const { manager, run, post } = await withHost()
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x' }, run)
    expect(await post(`tasks/async:${id}/cancel`, { reason: 'not needed' })).toMatchObject({ status: 200, body: {} })
    expect(manager.getTask(id)).toMatchObject({ status: 'cancelled', cancelReason: 'not needed' })
    expect(await post(`tasks/async:${id}/cancel`)).toMatchObject({ status: 409, body: { code: 'TASK_ENDED' } })
  })

  it('cancels a command task', async () => {
    const { taskManager, post } = await withInstance()
    const submitted = taskManager.submitTask({ type: 'task_submit', task_name: 'x', commands: [{ tool_name: 'hang' }] })
    const id = 'taskId' in submitted ? submitted.taskId : ''
    expect((await post(`tasks/command:${id}/cancel`, { reason: 'enough' })).status).toBe(200)
    expect(taskManager.getTask(id)).toMatchObject({ status: 'cancelled', error: { message: 'Task cancelled: enough' } })
  })

  it.each([
    [{ reason: 3 }, 400, 'reason'],
    [{ reason: 'x'.repeat(1001) }, 400, 'reason'],
    [{ why: 'x' }, 400, 'why'],
    [[], 400, ''],
    ['{"reason":', 400, undefined],
    ['['.repeat(200), 400, undefined],
    [`"${'x'.repeat(1024 * 1024)}"`, 413, undefined],
  ])('refuses %.30j, and changes nothing', async (body, status, field) => {
    const { manager, run, post } = await withHost()
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x' }, run)
    const answered = await post(`tasks/async:${id}/cancel`, body)
    expect([answered.status, answered.body['field']]).toEqual([status, field])
    expect(answered.body).toMatchObject({ error: expect.any(String) as unknown, code: expect.any(String) as unknown })
    expect(manager.getTask(id)?.status).toBe('running')
  })

  it('of an unknown task, and an unknown action, are not found', async () => {
    const { manager, run, post } = await withHost()
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x' }, run)
    expect((await post('tasks/async:none/cancel')).status).toBe(404)
    expect((await post(`tasks/async:${id}/constructor`)).status).toBe(404)
    expect((await post(`tasks/async:${id}/cancel/more`)).status).toBe(404)
    expect((await post('nothing')).status).toBe(404)
  })
})

describe('answer', () => {
  it('is given to the run, and checked by the schema of the question', async () => {
    const { manager, run, runs, post } = await withHost()
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x' }, run)
    const schema = {
      type: 'object',
      properties: { color: { type: 'string', enum: ['red', 'blue'] } },
      required: ['color'],
    }
    await expect.poll(() => runs.length).toBe(1)
    const asked = runs[0]!.context.ask({ message: 'Which?', schema })
    const give = (answer: unknown) => post(`tasks/async:${id}/answer`, { questionId: 'question-1', answer })
    expect(await give({ action: 'accept', content: { color: 'green' } })).toMatchObject({
      status: 400,
      body: { field: 'content.color' },
    })
    expect(await give({ action: 'perhaps' })).toMatchObject({ status: 400, body: { field: 'action' } })
    const words = 'expected an object with an action: accept, decline or cancel.'
    expect(await give(undefined)).toMatchObject({
      status: 400,
      body: { field: 'answer', error: `body.answer: got undefined, ${words}` },
    })
    expect(await give('red')).toMatchObject({ status: 400, body: { error: `body.answer: got "red", ${words}` } })
    expect(await give({ action: 'accept', content: 'red' })).toMatchObject({ status: 400, body: { field: 'content' } })
    expect(manager.getTask(id)?.questions).toHaveLength(1)
    expect(await give({ action: 'accept', content: { color: 'red' } })).toMatchObject({ status: 200 })
    expect(await asked).toEqual({ action: 'accept', content: { color: 'red' } })
    expect(await give({ action: 'decline' })).toMatchObject({ status: 409, body: { code: 'QUESTION_CLOSED' } })
  })
})

it('an answer with a field that cannot be passed on is refused, and names it', async () => {
  const { manager, run, runs, post } = await withHost()
  const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x' }, run)
  await expect.poll(() => runs.length).toBe(1)
  const asked = runs[0]!.context.ask('Which?')
  const give = (content: string) =>
    post(`tasks/async:${id}/answer`, `{"questionId":"question-1","answer":{"action":"accept","content":${content}}}`)
  expect(await give('{"answer":"this","__proto__":"that"}')).toMatchObject({
    status: 400,
    body: {
      field: 'content.__proto__',
      error:
        'answer.content.__proto__: got "that", expected another name, because a field with this name would be lost.',
    },
  })
  expect(manager.getTask(id)?.questions).toHaveLength(1)
  expect((await give('{"answer":"this"}')).status).toBe(200)
  expect(await asked).toEqual({ action: 'accept', content: { answer: 'this' } })
})

describe('message', () => {
  it('reaches the run', async () => {
    const { manager, run, runs, post } = await withHost()
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x' }, run)
    await expect.poll(() => runs.length).toBe(1)
    expect((await post(`tasks/async:${id}/message`, { message: 'hurry' })).status).toBe(200)
    for await (const message of runs[0]!.context.messages) {
      expect(message).toBe('hurry')
      break
    }
    expect(await post(`tasks/async:${id}/message`, { message: '' })).toMatchObject({
      status: 400,
      body: { field: 'message' },
    })
    manager.cancelTask(id)
    expect(await post(`tasks/async:${id}/message`, { message: 'x' })).toMatchObject({
      status: 409,
      body: { code: 'NOT_SENT' },
    })
  })
})

describe('deadline and conclude', () => {
  it('F10: change the deadline of a running task, and ask it to conclude', async () => {
    const { manager, run, runs, get, post } = await withHost()
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x' }, run)
    await expect.poll(() => runs.length).toBe(1)
    const path = `tasks/async:${id}`
    expect((await post(`${path}/deadline`, { seconds: 90 })).status).toBe(200)
    expect(manager.getTask(id)?.timeoutMs).toBeGreaterThanOrEqual(90_000)
    expect((await post(`${path}/deadline`, { seconds: null })).status).toBe(200)
    expect(manager.getTask(id)).not.toHaveProperty('timeoutMs')
    expect(await post(`${path}/deadline`, { seconds: 'x' })).toMatchObject({ status: 400, body: { field: 'seconds' } })
    expect((await get(path)).body['can']).toMatchObject({ conclude: true })
    expect((await post(`${path}/conclude`, { reason: 'late' })).status).toBe(200)
    expect(runs[0]!.context.wrapUp.aborted).toBe(true)
    expect((await get(path)).body['can']).not.toHaveProperty('conclude')
    expect(await post(`${path}/conclude`)).toMatchObject({ status: 409, body: { code: 'NOT_CHANGED' } })
  })
})

describe('move to the background', () => {
  it('F14: is offered for a task in the foreground alone, moves it, and is an event of the task', async () => {
    const { manager, run, get, post } = await withHost()
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x', isForeground: true }, run)
    const detail = () => get(`tasks/async:${id}`)
    const { body: before } = await detail()
    expect(before['can']).toMatchObject({ cancel: true, detach: true })
    expect(await post(`tasks/async:${id}/detach`)).toMatchObject({ status: 200, body: {} })
    expect(manager.getTask(id)).not.toHaveProperty('isForeground')
    const { body } = await detail()
    expect(body['can']).not.toHaveProperty('detach')
    expect(body['events']).toContainEqual(
      expect.objectContaining({ event: 'moved to the background', state: 'running' }),
    )
    expect((body['task'] as { seq: number }).seq).toBeGreaterThan((before['task'] as { seq: number }).seq)
    expect(await post(`tasks/async:${id}/detach`)).toMatchObject({ status: 409, body: { code: 'NOT_DETACHED' } })
  })

  it('F14: says that no slot is free, and changes nothing', async () => {
    const { manager, run, get, post } = await withHost(0)
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x', isForeground: true }, run)
    expect(await post(`tasks/async:${id}/detach`)).toMatchObject({
      status: 409,
      body: { code: 'TASK_LIMIT', error: 'Max async tasks (0) reached' },
    })
    expect((await get(`tasks/async:${id}`)).body['can']).toMatchObject({ detach: true })
    expect(await post(`tasks/async:${id}/detach`, { now: true })).toMatchObject({ status: 400 })
  })

  it('F14: is nothing for a command task', async () => {
    const { taskManager, post } = await withInstance()
    const submitted = taskManager.submitTask({
      type: 'task_submit',
      task_name: 't',
      instanceId: 'calc',
      commands: [{ tool_name: 'hang', args: {} }],
    })
    if ('error' in submitted) expect.unreachable()
    expect(await post(`tasks/command:${submitted.taskId}/detach`)).toMatchObject({
      status: 409,
      body: { code: 'NOT_DETACHED' },
    })
  })
})

describe('run again', () => {
  it('launches another task with the same input, for the same owner', async () => {
    const { manager, post } = await withHost()
    const inputs: unknown[] = []
    const input = {
      subagentName: 'helper',
      goalPrompt: 'x',
      owner: 'someone',
      context: { depth: 2 },
      timeoutMs: 60_000,
    }
    const { id } = manager.launch(input, (given) => {
      inputs.push(given)
      return {}
    })
    await expect.poll(() => manager.getTask(id)?.status).toBe('completed')
    const { status, body } = await post(`tasks/async:${id}/run-again`)
    const again = idOf(body['key'])
    expect([status, again === id]).toEqual([200, false])
    await expect.poll(() => manager.getTask(again)?.status).toBe('completed')
    expect(manager.getTask(again)).toMatchObject({ owner: 'someone', goalPrompt: 'x', timeoutMs: 60_000 })
    expect(inputs).toEqual(
      [id, again].map((each) => ({ id: each, subagent: 'helper', goal: 'x', context: { depth: 2 } })),
    )
  })

  it('takes no fields, such as the reason of a cancellation', async () => {
    const { manager, post } = await withHost()
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x' }, () => ({}))
    await expect.poll(() => manager.getTask(id)?.status).toBe('completed')
    expect(await post(`tasks/async:${id}/run-again`, { reason: 'x' })).toMatchObject({
      status: 400,
      body: { code: 'INVALID_INPUT', field: 'reason' },
    })
    expect(manager.getAllTasks()).toHaveLength(1)
  })

  it('F15: does not wait again for the tasks that it has waited for', async () => {
    const { manager, post, get } = await withHost()
    const task = { subagentName: 'helper', goalPrompt: 'x' }
    const { id: first } = manager.launch(task, () => ({}))
    const { id } = manager.launch({ ...task, after: [first] }, () => ({}))
    await expect.poll(() => manager.getTask(id)?.status).toBe('completed')
    expect((await get(`tasks/async:${id}`)).body['after']).toEqual([`async:${first}`])
    expect((await get(`tasks/async:${first}`)).body['neededBy']).toEqual([`async:${id}`])
    const again = idOf((await post(`tasks/async:${id}/run-again`)).body['key'])
    await expect.poll(() => manager.getTask(again)?.status).toBe('completed')
    expect(manager.getTask(again)).not.toHaveProperty('after')
  })

  it('says why it cannot: the host runs the task, or no slot is free', async () => {
    const { manager, run, get, post } = await withHost(2)
    manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'x' })
    const { body } = await get('tasks/async:a')
    expect(body['can']).toMatchObject({
      runAgain: false,
      whyNot: expect.stringContaining('The host has no subagent') as unknown,
    })
    expect(await post('tasks/async:a/run-again')).toMatchObject({ status: 409, body: { code: 'NOT_REPEATABLE' } })
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x' }, run)
    expect(await post(`tasks/async:${id}/run-again`)).toMatchObject({
      status: 409,
      body: { code: 'TASK_LIMIT', error: 'Max async tasks (2) reached' },
    })
  })

  it('is not possible when the manager was disposed, and says so', async () => {
    const { manager, get, post } = await withHost()
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x' }, () => ({}))
    await expect.poll(() => manager.getTask(id)?.status).toBe('completed')
    expect((await get(`tasks/async:${id}`)).body['can']).toEqual({ cancel: false, runAgain: true })
    await manager.dispose()
    const can = { cancel: false, runAgain: false, whyNot: expect.stringContaining('was disposed') as unknown }
    expect((await get(`tasks/async:${id}`)).body['can']).toEqual(can)
    expect(await post(`tasks/async:${id}/run-again`)).toMatchObject({ status: 409, body: { code: 'NOT_REPEATABLE' } })
  })

  it('of a command task is not possible when its manager was disposed', async () => {
    const { taskManager, get, post } = await withInstance()
    const submitted = taskManager.submitTask({ type: 'task_submit', task_name: 'x', commands: [{ tool_name: 'hang' }] })
    const key = `command:${'taskId' in submitted ? submitted.taskId : ''}`
    expect(taskManager.isDisposed).toBe(false)
    await taskManager.dispose()
    expect(taskManager.isDisposed).toBe(true)
    expect((await get(`tasks/${key}`)).body['can']).toMatchObject({ cancel: false, runAgain: false })
    expect(await post(`tasks/${key}/run-again`)).toMatchObject({ status: 409, body: { code: 'NOT_REPEATABLE' } })
  })

  it('says why it cannot: its manager has forgotten the task, and no subagent has its name', async () => {
    const { manager, get, post } = await withHost(1)
    const launch = async (id: string): Promise<void> => {
      manager.launch({ id, subagentName: 'helper', goalPrompt: 'x' }, () => ({}))
      await expect.poll(() => manager.getTask(id)?.status).toBe('completed')
      manager.markNotified(id)
    }
    await launch('a')
    expect((await get('tasks/async:a')).body['can']).toEqual({ cancel: false, runAgain: true })
    for (let index = 0; manager.getTask('a') !== undefined; index += 1) await launch(`b${index}`)
    expect((await get('tasks/async:a')).body['can']).toMatchObject({
      runAgain: false,
      whyNot: expect.stringContaining('has no subagent "helper"') as unknown,
    })
    expect(await post('tasks/async:a/run-again')).toMatchObject({ status: 409, body: { code: 'NOT_REPEATABLE' } })
    // Another task has its id now.
    await launch('a')
    expect((await get('tasks/async:a')).body['can']).toMatchObject({ runAgain: true })
  })

  it('does not follow the command task of another one again', async () => {
    const { taskManager } = await withInstance()
    const tasks = createAgentTasks({ taskManager })
    const { get } = await startPage({ tasks, taskManager })
    await tasks.tools.submit_commands.execute({
      task_name: 'x',
      commands: [{ tool_name: 'add', args: { a: 1, b: 2 } }],
      async: true,
    })
    const [task] = tasks.getAsyncTaskManager().getAllTasks()
    expect((await get(`tasks/async:${task?.id}`)).body['can']).toMatchObject({ runAgain: false })
    await tasks.dispose()
  })

  it('of a task whose run has ended goes to the owner of that run', async () => {
    const { manager, run, runs, post } = await withHost()
    const parent = manager.launch({ subagentName: 'parent', goalPrompt: 'x', owner: 'someone' }, run)
    await expect.poll(() => runs.length).toBe(1)
    const child = runs[0]!.context.launch({ subagentName: 'child', goalPrompt: 'y' }, () => ({}))
    await expect.poll(() => manager.getTask(child.id)?.status).toBe('completed')
    manager.markNotified(child.id)
    expect(manager.getTask(child.id)?.owner).toBe(ownerOfRun(parent.id))
    const again = await post(`tasks/async:${child.id}/run-again`)
    expect(manager.getTask(idOf(again.body['key']))?.owner).toBe(ownerOfRun(parent.id))
    runs[0]!.finish({})
    await expect.poll(() => manager.getTask(parent.id)?.status).toBe('completed')
    const later = await post(`tasks/async:${child.id}/run-again`)
    expect(manager.getTask(idOf(later.body['key']))?.owner).toBe('someone')
  })

  it('submits the same commands to the same instance', async () => {
    const { taskManager, post } = await withInstance()
    const submitted = taskManager.submitTask({
      type: 'task_submit',
      task_name: 'Sum',
      commands: [{ tool_name: 'add', args: { a: 1, b: 2 }, timeout: 500 }],
      metadata: { asyncTaskId: 'gone', mine: true },
    })
    const id = 'taskId' in submitted ? submitted.taskId : ''
    const { body } = await post(`tasks/command:${id}/run-again`)
    const again = taskManager.getTask(idOf(body['key']))
    expect(again).toMatchObject({ name: 'Sum', instanceId: 'calc', metadata: { mine: true } })
    expect(again?.metadata).not.toHaveProperty('asyncTaskId')
    expect(again?.commands).toMatchObject([{ tool_name: 'add', args: { a: 1, b: 2 }, timeout: 500 }])
  })

  it('submits the same commands also when their manager has forgotten the task, unless some of them are no longer whole', async () => {
    const instances = new InstanceManager()
    const given: unknown[] = []
    instances.connect(
      localInstance({ id: 'calc', tools: [{ name: 'note', execute: (input: unknown) => given.push(input) }] }),
    )
    const taskManager = new TaskManager({ instances, maxRetained: 1 })
    onTestFinished(async () => {
      await taskManager.dispose()
      await instances.dispose()
    })
    const { get, post } = await startPage({ taskManager })
    const submit = async (args: Record<string, unknown>): Promise<string> => {
      const submitted = taskManager.submitTask({
        type: 'task_submit',
        task_name: 'Note',
        task_intention: 'why',
        instanceId: 'calc',
        commands: [{ tool_name: 'note', args, intention: 'because', timeout: 5000 }],
      })
      const id = 'taskId' in submitted ? submitted.taskId : ''
      await expect.poll(() => taskManager.getTask(id)?.status).toBe('completed')
      return id
    }
    const small = await submit({ final_message: 'x' })
    const large = await submit({ text: 'x'.repeat(3 * 1024 * 1024) })
    await submit({})
    const { body } = await post(`tasks/command:${small}/run-again`)
    await expect.poll(() => taskManager.getTask(idOf(body['key']))?.status).toBe('completed')
    expect(given.at(-1)).toEqual({ final_message: 'x' })
    expect(taskManager.getTask(idOf(body['key']))).toMatchObject({
      name: 'Note',
      intention: 'why',
      commands: [{ tool_name: 'note', intention: 'because', timeout: 5000 }],
    })
    expect((await get(`tasks/command:${large}`)).body).toMatchObject({
      can: { runAgain: false, whyNot: expect.stringContaining('too large to be kept') as unknown },
      commands: [{ args: { isCut: true } }],
    })
    expect(await post(`tasks/command:${large}/run-again`)).toMatchObject({
      status: 409,
      body: { code: 'NOT_REPEATABLE' },
    })
  })
})

describe('submit', () => {
  it('runs commands on an instance', async () => {
    const { taskManager, post, read } = await withInstance()
    const { status, body } = await post('instances/calc/submit', { commands: [{ tool: 'add', args: { a: 1, b: 2 } }] })
    expect(status).toBe(200)
    const reader = await read()
    await reader.until(({ tasks }) => tasks.get(String(body['key']))?.state === 'completed')
    expect(taskManager.getTask(idOf(body['key']))).toMatchObject({ name: 'add', commands: [{ status: 'success' }] })
    const commands = [3, 4].map((a) => ({ tool: 'add', args: { a, b: 0 } }))
    const named = await post('instances/calc/submit', { name: 'Sums', commands })
    expect(taskManager.getTask(idOf(named.body['key']))).toMatchObject({ name: 'Sums', commands: [{}, {}] })
    expect(reader.ready?.instances).toMatchObject([{ id: 'calc', state: 'connected', type: 'local' }])
  })

  it.each([
    [{}, 400, 'commands'],
    [{ commands: [] }, 400, 'commands'],
    [{ name: '', commands: [{ tool: 'add', args: {} }] }, 400, 'name'],
    [{ name: 'x'.repeat(1001), commands: [{ tool: 'add', args: {} }] }, 400, 'name'],
    [{ commands: [{ tool: 3, args: {} }] }, 400, 'commands.0.tool'],
    [{ commands: [{ tool: 'add', args: [] }] }, 400, 'commands.0.args'],
    [{ commands: [{ tool: 'add', args: {}, more: 1 }] }, 400, 'commands.0.more'],
    [
      { commands: [{ tool: 'add', args: JSON.parse('{"a":1,"__proto__":{"b":2}}') as object }] },
      400,
      'commands.0.args.__proto__',
    ],
    [{ commands: Array.from({ length: 1001 }, () => ({ tool: 'add', args: {} })) }, 400, undefined],
  ])('refuses %.60j, and says which field', async (body, status, field) => {
    const { taskManager, post } = await withInstance()
    const answered = await post('instances/calc/submit', body)
    expect([answered.status, answered.body['field']]).toEqual([status, field])
    expect(taskManager.listTasks()).toEqual([])
  })

  it('to an unknown instance is not found', async () => {
    const { post } = await withInstance()
    expect(await post('instances/none/submit', { commands: [{ tool: 'add', args: {} }] })).toMatchObject({
      status: 404,
    })
  })
})
