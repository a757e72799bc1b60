// The client socket: every request and its answer, pushed messages, and errors, over real sockets.
import { describe, expect, it } from 'vitest'
import { createHolding, startTestServer, taskOf } from './test-server.js'

const submit = (...tools: string[]) => ({ type: 'task_submit', ...taskOf(...tools) })

describe('the client socket', () => {
  it('sends welcome on the client port and on the HTTP port', async () => {
    const server = await startTestServer()
    for (const url of [server.wsUrl, `${server.wsUrl}/ws`, `${server.httpUrl.replace('http', 'ws')}/ws`]) {
      const client = await server.client({ url })
      expect(await client.ask({ type: 'task_list' })).toMatchObject({ tasks: [] })
      await client.close()
    }
  })

  it('S7: answers a submit before its first event, then sends each step in order, complete last', async () => {
    const server = await startTestServer()
    const client = await server.client()
    client.send({ ...submit('add', 'echo'), requestId: 7 })
    const response = await client.next()
    expect(response).toEqual({
      type: 'task_submit_response',
      requestId: 7,
      success: true,
      status: 'accepted',
      queuePosition: 1,
      taskId: expect.stringMatching(/^task_\d+_1$/) as string,
    })
    const told = [
      await client.next(),
      await client.next(),
      await client.next(),
      await client.next(),
      await client.next(),
    ]
    expect(told.map(({ type, commandIndex, status }) => [type, commandIndex, status])).toEqual([
      ['task_progress', 0, 'running'],
      ['task_progress', 0, 'success'],
      ['task_progress', 1, 'running'],
      ['task_progress', 1, 'success'],
      ['task_complete', undefined, 'completed'],
    ])
    expect(told.every(({ taskId, instanceId }) => taskId === response['taskId'] && instanceId === 'calc')).toBe(true)
    // An answer to a later request proves that nothing else was on its way.
    await client.ask({ type: 'task_list' })
    expect(client.takeAll()).toEqual([])
  })

  it('passes on the progress of a running command', async () => {
    const server = await startTestServer()
    const client = await server.client()
    client.send(submit('hold'))
    const held = await server.held()
    held.progress(1, 3, 'one of three')
    held.finish('done')
    await client.skipTo('task_progress')
    expect(await client.next()).toMatchObject({
      type: 'task_progress',
      status: 'running',
      progress: 1,
      total: 3,
      message: 'one of three',
    })
    expect(await client.next()).toMatchObject({ status: 'success' })
  })

  it('rejects a submit with an error and its code', async () => {
    const server = await startTestServer()
    const client = await server.client()
    expect(await client.ask({ ...submit('add'), instanceId: 'nobody' })).toEqual({
      type: 'task_submit_response',
      requestId: 'test-1',
      success: false,
      status: 'rejected',
      error: 'Instance not found: nobody. Known instances: calc.',
      code: 'INVALID_INSTANCE',
    })
    expect(await client.ask(submit())).toMatchObject({ success: false, status: 'rejected', code: 'NO_COMMANDS' })
  })

  it('answers an unknown cursor with an error', async () => {
    const server = await startTestServer()
    const client = await server.client()
    expect(await client.ask({ type: 'task_list', cursor: '2' })).toMatchObject({
      type: 'error',
      requestId: 'test-1',
      code: 'INVALID_CURSOR',
      message: 'cursor: expected a nextCursor that this server has returned.',
    })
  })

  it('lists, gets and cancels tasks', async () => {
    const server = await startTestServer()
    const client = await server.client()
    const { taskId } = await client.ask(submit('hold'))
    const { taskId: second } = await client.ask(submit('hold'))
    await server.held()
    const page = await client.ask({ type: 'task_list', limit: 1 })
    expect(page).toEqual({
      type: 'task_list_response',
      requestId: 'test-3',
      nextCursor: expect.any(String) as string,
      tasks: [expect.objectContaining({ id: second, status: 'queued', totalCommands: 1 })],
    })
    expect(await client.ask({ type: 'task_list', cursor: page['nextCursor'] })).toMatchObject({
      tasks: [{ id: taskId }],
    })
    expect(await client.ask({ type: 'task_list', status: 'all' })).toMatchObject({
      tasks: [{ id: second }, { id: taskId }],
    })
    expect(await client.ask({ type: 'task_list', status: 'running', instanceId: 'calc' })).toMatchObject({
      tasks: [{ id: taskId }],
    })
    expect(await client.ask({ type: 'task_status', taskId })).toMatchObject({
      type: 'task_status_response',
      task: { id: taskId, status: 'running' },
    })
    expect(await client.ask({ type: 'task_status', taskId: 'none' })).toEqual({
      type: 'task_status_response',
      requestId: 'test-8',
      task: null,
      error: 'Task not found',
    })
    expect(await client.ask({ type: 'task_cancel', taskId })).toEqual({
      type: 'task_cancel_response',
      requestId: 'test-9',
      taskId,
      success: true,
    })
    expect(await client.ask({ type: 'task_cancel', taskId })).toMatchObject({
      taskId,
      success: false,
      error: 'Task already cancelled',
      code: 'TASK_ENDED',
    })
    expect(await client.ask({ type: 'task_cancel', taskId: 'none' })).toMatchObject({
      success: false,
      error: 'Task not found',
      code: 'TASK_NOT_FOUND',
    })
  })

  it('S7: sends a subscriber each event once, however many of its subscriptions match', async () => {
    const server = await startTestServer()
    const submitter = await server.client()
    const watcher = await server.client()
    await watcher.ask({ type: 'subscribe_instance', instanceId: 'calc' })
    const { taskId } = await submitter.ask(submit('hold'))
    await watcher.ask({ type: 'subscribe_task', taskId })
    await watcher.ask({ type: 'subscribe_task', taskId })
    await submitter.ask({ type: 'subscribe_instance', instanceId: 'calc' })
    const held = await server.held()
    held.finish()
    for (const client of [submitter, watcher]) {
      const types: string[] = []
      do types.push((await client.next()).type)
      while (types.at(-1) !== 'task_complete')
      expect(types).toEqual(['task_progress', 'task_progress', 'task_complete'])
      await client.ask({ type: 'task_list' })
      expect(client.takeAll()).toEqual([])
    }
  })

  it('S7: sends a late subscriber a snapshot first, then the events that follow it', async () => {
    const server = await startTestServer()
    const { body } = await server.post('/tasks', taskOf('add', 'hold'))
    const held = await server.held()
    const client = await server.client()
    expect(await client.ask({ type: 'subscribe_task', taskId: body['taskId'] })).toMatchObject({
      type: 'subscribe_ack',
      taskId: body['taskId'],
      task: { status: 'running', currentCommandIndex: 1, commands: [{ status: 'success' }, { status: 'running' }] },
    })
    held.finish()
    expect(await client.next()).toMatchObject({ type: 'task_progress', commandIndex: 1, status: 'success' })
    expect(await client.next()).toMatchObject({ type: 'task_complete', status: 'completed' })
  })

  it('S7: sends a subscriber of an ended task the snapshot and the complete', async () => {
    const server = await startTestServer()
    const first = await server.client()
    const { taskId } = await first.ask(submit('blow'))
    const complete = await first.skipTo('task_complete')
    const late = await server.client()
    expect(await late.ask({ type: 'subscribe_task', taskId })).toMatchObject({
      type: 'subscribe_ack',
      task: { status: 'failed' },
    })
    expect(await late.next()).toEqual(complete)
  })

  it('answers TASK_NOT_FOUND for a task that is unknown or was removed', async () => {
    const server = await startTestServer()
    const client = await server.client()
    expect(await client.ask({ type: 'subscribe_task', taskId: 'task_0_1' })).toEqual({
      type: 'subscribe_ack',
      requestId: 'test-1',
      taskId: 'task_0_1',
      task: null,
      error: 'Task not found',
      code: 'TASK_NOT_FOUND',
    })
  })

  it('sends nothing after an unsubscribe', async () => {
    const server = await startTestServer()
    const client = await server.client()
    const { taskId } = await client.ask(submit('hold'))
    await client.ask({ type: 'subscribe_instance', instanceId: 'calc' })
    const held = await server.held()
    await client.skipTo('task_progress')
    expect(await client.ask({ type: 'unsubscribe_task', taskId })).toEqual({
      type: 'unsubscribe_ack',
      requestId: 'test-3',
      taskId,
    })
    expect(await client.ask({ type: 'unsubscribe_instance', instanceId: 'calc' })).toEqual({
      type: 'unsubscribe_ack',
      requestId: 'test-4',
      instanceId: 'calc',
    })
    held.finish()
    const watcher = await server.client()
    await watcher.ask({ type: 'subscribe_task', taskId })
    await watcher.skipTo('task_complete')
    await client.ask({ type: 'task_list' })
    expect(client.takeAll()).toEqual([])
  })

  it('allows a subscription to an instance that connects later', async () => {
    const server = await startTestServer({ instances: [] })
    const client = await server.client()
    await client.ask({ type: 'subscribe_instance', instanceId: 'late' })
    server.instances.connect(createHolding('late').instance)
    await server.post('/tasks', taskOf('add'))
    expect(await client.skipTo('task_complete')).toMatchObject({ instanceId: 'late', status: 'completed' })
  })

  it('S9: removes the subscriptions of an ended task and of a disconnected client', async () => {
    const server = await startTestServer({ limits: { subscriptionsPerClient: 1 } })
    const client = await server.client()
    for (let count = 0; count < 3; count += 1) {
      expect(await client.ask(submit('add'))).toMatchObject({ success: true })
      await client.skipTo('task_complete')
    }
    const subscribed = async (): Promise<string | undefined> =>
      /^agent_tasks_subscribed (\d+)$/m.exec(String((await server.call('/metrics')).body['text']))?.[1]
    expect(await subscribed()).toBe('0')
    await client.ask({ type: 'subscribe_instance', instanceId: 'a' })
    expect(await subscribed()).toBe('1')
    await client.close()
    // The server may see the close a little later than the client.
    while ((await subscribed()) !== '0');
  })

  it('limits the subscriptions of a client', async () => {
    const server = await startTestServer({ limits: { subscriptionsPerClient: 2 } })
    const client = await server.client()
    const { taskId } = await client.ask(submit('hold'))
    await client.ask({ type: 'subscribe_instance', instanceId: 'a' })
    expect(await client.ask({ type: 'subscribe_instance', instanceId: 'b' })).toMatchObject({
      type: 'error',
      code: 'TOO_MANY_SUBSCRIPTIONS',
    })
    expect(await client.ask({ type: 'subscribe_instance', instanceId: 'a' })).toMatchObject({ type: 'subscribe_ack' })
    expect(await client.ask({ type: 'subscribe_task', taskId })).toMatchObject({ type: 'subscribe_ack' })
    expect(await client.ask(submit('hold'))).toMatchObject({
      success: false,
      status: 'rejected',
      code: 'TOO_MANY_SUBSCRIPTIONS',
    })
    expect(server.taskManager.listTasks()).toHaveLength(1)
    await client.ask({ type: 'unsubscribe_instance', instanceId: 'a' })
    expect(await client.ask({ type: 'subscribe_instance', instanceId: 'b' })).toMatchObject({ type: 'subscribe_ack' })
  })

  it.each([
    ['text that is no JSON', '{"type":', 'MALFORMED_JSON', 'Malformed JSON', 'The text is not JSON.'],
    [
      'JSON that is nested too deep',
      `{"type":"task_list","a":${'['.repeat(64)}`,
      'TOO_DEEP',
      'Nested too deep',
      /64 levels/,
    ],
    [
      'a type that is unknown',
      '{"type":"task_explode"}',
      'UNKNOWN_MESSAGE_TYPE',
      'Unknown message type',
      /message\.type: got "task_explode"/,
    ],
    ['no type at all', '{}', 'INVALID_MESSAGE', 'Invalid message', /message\.type/],
    ['an array', '[]', 'INVALID_MESSAGE', 'Invalid message', /expected an object/],
    ['null', 'null', 'INVALID_MESSAGE', 'Invalid message', /expected an object/],
    [
      'a field of another type',
      '{"type":"task_status","taskId":5}',
      'INVALID_MESSAGE',
      'Invalid message',
      'message.taskId: got 5, expected a string.',
    ],
    [
      'a status that there is not',
      '{"type":"task_list","status":"done"}',
      'INVALID_MESSAGE',
      'Invalid message',
      /message\.status: got "done", expected one of "queued"/,
    ],
  ])(
    'answers %s with an error that says what was expected, and stays open',
    async (_what, frame, code, error, message) => {
      const server = await startTestServer()
      const client = await server.client()
      client.send(frame)
      expect(await client.next()).toEqual({
        type: 'error',
        code,
        error,
        message: typeof message === 'string' ? message : (expect.stringMatching(message) as string),
      })
      expect(await client.ask({ type: 'task_list' })).toMatchObject({ tasks: [] })
    },
  )

  it.each([
    ['without a name', { commands: [] }, 'message.task_name: got undefined, expected a string.'],
    ['without commands', { task_name: 'a' }, 'message.commands: got undefined, expected an array.'],
    ['with a wrong command', { task_name: 'a', commands: [7] }, 'message.commands[0]: got 7, expected an object.'],
  ])('rejects a task %s with the response that its client waits for', async (_what, task, error) => {
    const server = await startTestServer()
    const client = await server.client()
    const rejected = { type: 'task_submit_response', success: false, status: 'rejected', code: 'INVALID_TASK', error }
    expect(await client.ask({ type: 'task_submit', ...task })).toEqual({ ...rejected, requestId: 'test-1' })
    client.send({ type: 'task_submit', ...task })
    expect(await client.next()).toEqual(rejected)
    expect(server.taskManager.listTasks()).toEqual([])
  })

  it('repeats the requestId of an invalid request', async () => {
    const server = await startTestServer()
    const client = await server.client()
    expect(await client.ask({ type: 'task_status' })).toMatchObject({
      type: 'error',
      requestId: 'test-1',
      code: 'INVALID_MESSAGE',
    })
  })

  it('repeats a requestId of at most 256 characters, and a number', async () => {
    const client = await (await startTestServer()).client()
    const errorTo = async (requestId: unknown) => {
      client.send({ type: 'nonsense', requestId })
      return (await client.skipTo('error'))['requestId']
    }
    for (const id of ['x'.repeat(256), '', 0, 7]) expect(await errorTo(id)).toBe(id)
    for (const id of ['x'.repeat(257), null, {}, true]) expect(await errorTo(id)).toBeUndefined()
  })

  it('closes a socket whose frame is over the limit (1009)', async () => {
    const server = await startTestServer({ limits: { frameBytes: 1000 } })
    const client = await server.client()
    client.send({ type: 'task_status', taskId: 'x'.repeat(1000) })
    expect(await client.closed).toMatchObject({ code: 1009 })
  })

  it('refuses frames beyond the rate limit, and says how long to wait', async () => {
    const server = await startTestServer({ limits: { framesPerMinute: 3 } })
    const client = await server.client()
    for (let count = 0; count < 3; count += 1) {
      expect(await client.ask({ type: 'task_list' })).toMatchObject({ type: 'task_list_response' })
    }
    expect(await client.ask({ type: 'task_list' })).toMatchObject({ type: 'error', code: 'RATE_LIMITED' })
  })
})
