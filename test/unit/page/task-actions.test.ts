// What the actions of the page pass on to the managers, and what they answer.
import { expect, it, vi } from 'vitest'
import { AgentTasksError, InvalidInputError } from '../../../src/errors.js'
import { refusalOf } from '../../../src/page/answers.js'
import { rowActions, submit } from '../../../src/page/row-actions.js'
import { taskActions } from '../../../src/page/task-actions.js'
import { copyCommandTask } from '../../../src/page/copy-as.js'
import { commandState, barState } from '../../../src/page/command-entry.js'

const asyncEntry = { kind: 'async', record: { id: 'a1' } } as never
const commandEntry = { kind: 'command', id: 'c1' } as never

function createSubject() {
  const manager = {
    cancelTask: vi.fn(() => true),
    stored: vi.fn(() => Promise.resolve()),
    answerTask: vi.fn(() => true),
    sendToTask: vi.fn((): unknown => ({ sent: true })),
  }
  const taskManager = {
    cancelTask: vi.fn(() => true),
    stored: vi.fn(() => Promise.resolve()),
    submitTask: vi.fn((_message: { task_name: string }): unknown => ({ taskId: 'c2' })),
    accepted: vi.fn((): Promise<boolean> | undefined => undefined),
    pauseInstance: vi.fn(),
    resumeInstance: vi.fn(),
    instances: { get: (id: string) => (id === 'calc' ? {} : undefined) },
  }
  const state = { noteAnswer: vi.fn(), noteMessage: vi.fn() }
  const sources = { manager, taskManager, state } as never
  const act = (name: string, entry: never, body: unknown) => taskActions[name]?.(sources, entry, body)
  return { manager, taskManager, state, sources, act }
}

it('a cancellation without a reason, or with an empty one, says where it came from', async () => {
  const { manager, taskManager, act } = createSubject()
  for (const body of [{}, { reason: '' }, { reason: 'r'.repeat(1000) }]) {
    expect(await act('cancel', asyncEntry, body)).toEqual({ status: 200, body: {} })
  }
  void act('cancel', commandEntry, { reason: '' })
  expect(manager.cancelTask.mock.calls).toEqual([
    ['a1', { reason: 'cancelled on the page' }],
    ['a1', { reason: 'cancelled on the page' }],
    ['a1', { reason: 'r'.repeat(1000) }],
  ])
  expect(taskManager.cancelTask.mock.calls).toEqual([['c1', 'cancelled on the page']])
  await expect(act('cancel', asyncEntry, { reason: 'r'.repeat(1001) })).rejects.toThrow(InvalidInputError)
  manager.cancelTask.mockReturnValue(false)
  expect(await act('cancel', asyncEntry, {})).toMatchObject({ status: 409, body: { code: 'TASK_ENDED' } })
})

it('F22: a cancellation says how long the program may take to end', async () => {
  const { act } = createSubject()
  const entry = { kind: 'async', record: { id: 'a1' }, stopsWithinMs: 5000 } as never
  expect(await act('cancel', entry, {})).toEqual({ status: 200, body: { stopsWithinMs: 5000 } })
})

it('a cancellation that cannot be stored yet says so, when it is the store of this kind of task', async () => {
  const { manager, taskManager, act } = createSubject()
  const notStored = { status: 503, body: { code: 'NOT_STORED' } }
  manager.stored.mockRejectedValueOnce(new Error('the disk is full'))
  expect(await act('cancel', asyncEntry, {})).toMatchObject(notStored)
  taskManager.stored.mockRejectedValueOnce(new Error('the disk is full'))
  expect(await act('cancel', commandEntry, {})).toMatchObject(notStored)
  for (const entry of [asyncEntry, commandEntry]) expect(await act('cancel', entry, {})).toMatchObject({ status: 200 })
})

it('the pause of an instance is done when it is stored', async () => {
  const { taskManager, sources } = createSubject()
  for (const [action, act] of [
    ['pause', taskManager.pauseInstance],
    ['resume', taskManager.resumeInstance],
  ] as const) {
    taskManager.stored.mockRejectedValueOnce(new Error('the disk is full'))
    await expect(rowActions[`instances/${action}`]?.(sources, 'calc', {})).rejects.toThrow('the disk is full')
    expect(act).toHaveBeenCalledExactlyOnceWith('calc')
    expect(await rowActions[`instances/${action}`]?.(sources, 'calc', {})).toMatchObject({ status: 200 })
  }
})

it('an answer that cannot be stored yet says so', async () => {
  const { manager, act } = createSubject()
  manager.stored.mockRejectedValue(new Error('the disk is full'))
  const answer = { action: 'decline' }
  expect(await act('answer', asyncEntry, { questionId: 'q1', answer })).toMatchObject({
    status: 503,
    body: { code: 'NOT_STORED' },
  })
})

it('an answer or a message is noted when it has arrived, and only then', async () => {
  const { manager, state, act } = createSubject()
  const answer = { action: 'accept', content: { a: 1 } }
  expect(await act('answer', asyncEntry, { questionId: 'q1', answer })).toEqual({ status: 200, body: {} })
  expect(act('message', asyncEntry, { message: 'hi' })).toEqual({ status: 200, body: {} })
  expect([state.noteAnswer.mock.calls, state.noteMessage.mock.calls]).toEqual([
    [[asyncEntry, 'q1']],
    [[asyncEntry, 'hi']],
  ])
  expect([manager.answerTask.mock.calls, manager.sendToTask.mock.calls]).toEqual([
    [['a1', 'q1', answer]],
    [['a1', 'hi']],
  ])
  manager.answerTask.mockReturnValue(false)
  manager.sendToTask.mockReturnValue({ sent: false, reason: 'It takes none.' })
  expect(await act('answer', asyncEntry, { questionId: 'q1', answer })).toMatchObject({
    body: { code: 'QUESTION_CLOSED' },
  })
  expect(act('message', asyncEntry, { message: 'hi' })).toEqual({
    status: 409,
    body: { code: 'NOT_SENT', error: 'It takes none.' },
  })
  expect(await act('answer', commandEntry, { questionId: 'q1', answer })).toMatchObject({
    body: { code: 'NO_QUESTION' },
  })
  expect(act('message', commandEntry, { message: 'hi' })).toMatchObject({ body: { code: 'NOT_SENT' } })
  expect([state.noteAnswer.mock.calls.length, state.noteMessage.mock.calls.length]).toEqual([1, 1])
})

it('a submission without a name is named after its tools, in 200 characters', async () => {
  const { taskManager, sources } = createSubject()
  const commands = Array.from({ length: 30 }, (_, at) => ({ tool: `tool ${at}`, args: {} }))
  expect(await submit(sources, 'calc', { commands })).toEqual({ status: 200, body: { key: 'command:c2' } })
  await submit(sources, 'calc', { commands: commands.slice(0, 2) })
  const names = taskManager.submitTask.mock.calls.map(([message]) => message.task_name)
  expect(names[0]).toHaveLength(200)
  expect(names[1]).toBe('tool 0, tool 1')
  for (const [code, status] of [
    ['INVALID_TASK', 400],
    ['NO_COMMANDS', 400],
    ['QUEUE_FULL', 409],
  ] as const) {
    taskManager.submitTask.mockReturnValue({ error: 'no', code })
    expect(await submit(sources, 'calc', { commands })).toEqual({ status, body: { error: 'no', code } })
  }
})

it.each([
  [true, { status: 200, body: { key: 'command:c2' } }],
  [false, { status: 409, body: { code: 'NOT_STORED' } }],
])('a submission is answered when it is known whether it is stored: %s', async (isStored, expected) => {
  const { taskManager, sources } = createSubject()
  taskManager.accepted.mockReturnValue(Promise.resolve(isStored))
  expect(await submit(sources, 'calc', { commands: [{ tool: 'add', args: {} }] })).toMatchObject(expected)
  expect(taskManager.accepted.mock.calls).toEqual([['c2']])
})

it('a refusal names the field of the request, and what is not the affair of the client is none', () => {
  expect(refusalOf(new InvalidInputError('body.commands[0].args[12].a', 1, 'text'))?.body).toMatchObject({
    field: 'commands.0.args.12.a',
  })
  expect(refusalOf(new InvalidInputError('answer', 1, 'text'))).toMatchObject({ status: 400, body: { field: '' } })
  expect(refusalOf(new AgentTasksError('TASK_LIMIT', 'no'))).toEqual({
    status: 409,
    body: { code: 'TASK_LIMIT', error: 'no' },
  })
  expect(refusalOf(new Error('bug'))).toBeUndefined()
})

it('a command task is copied with all of its input', () => {
  const task = {
    id: 'c1',
    name: 'Sums',
    intention: 'to know',
    instanceId: 'calc',
    commands: [
      { tool_name: 'add', intention: 'first', args: { a: "it's" }, timeout: 500, result: 1 },
      { tool_name: 'add', intention: '', args: {} },
    ],
  } as never
  const body =
    '{"task_name":"Sums","task_intention":"to know","instanceId":"calc","commands":[' +
    `{"tool_name":"add","intention":"first","args":{"a":"it's"},"timeout":500},{"tool_name":"add","args":{}}]}`
  expect(copyCommandTask({ restUrl: undefined, hasRestTokens: true }, commandEntry, task)).toEqual({
    typescript: `taskManager.submitTask({ type: 'task_submit', ...${body} })`,
  })
  const restUrl = 'http://localhost:1'
  const { curl, typescript } = copyCommandTask({ restUrl, hasRestTokens: false }, commandEntry, task)
  expect(curl).toBe(
    `curl -s 'http://localhost:1/tasks' -H 'content-type: application/json' -d '${body.replace("'", `'\\''`)}'`,
  )
  const [, client, submission] = typescript.split('\n')
  expect(client).toBe('const client = createTaskClient({ url: "http://localhost:1" })')
  expect(submission).toBe(`const { taskId } = await client.submit(${body})`)
  const withToken = copyCommandTask({ restUrl, hasRestTokens: true }, commandEntry, task)
  expect(withToken.curl).toBe(curl?.replace(' -H', ' -H "authorization: Bearer $AGENT_TASKS_TOKEN" -H'))
  expect(withToken.typescript).toBe(typescript.replace(' })', `, token: process.env['AGENT_TASKS_TOKEN'] })`))
})

it('a command that was given up is shown by its reason, and a task by the end of its time', () => {
  const error = (code: string) => ({ code, message: 'm' }) as never
  expect(barState('skipped', undefined)).toBe('skipped')
  expect(barState('skipped', error('CANCELLED'))).toBe('cancelled')
  expect(barState('skipped', error('COMMAND_TIMEOUT'))).toBe('failed')
  expect(barState('error', error('X'))).toBe('failed')
  expect(commandState({ status: 'failed', error: error('COMMAND_TIMEOUT') } as never)).toBe('timed-out')
  expect(commandState({ status: 'failed', error: error('OTHER') } as never)).toBe('failed')
  expect(commandState({ status: 'completed' } as never)).toBe('completed')
})
