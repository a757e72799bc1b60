// The REST routes: every documented status, over real sockets.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { Script } from 'node:vm'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openSocket } from '../../support/socket-client.js'
import { startTestServer, taskOf, type TestServer } from './test-server.js'

describe('POST /tasks', () => {
  it('answers 201 with taskId, queuePosition and wsEndpoint', async () => {
    const server = await startTestServer()
    const first = await server.post('/tasks', { ...taskOf('hold'), instanceId: 'calc' })
    expect(first).toMatchObject({ status: 201, body: { queuePosition: 1, wsEndpoint: server.wsUrl } })
    expect(first.body['taskId']).toMatch(/^task_\d+_1$/)
    expect(await server.post('/tasks', taskOf('add'))).toMatchObject({ status: 201, body: { queuePosition: 2 } })
  })

  it('answers 400 to an invalid task, with the field, the value and what was expected', async () => {
    const server = await startTestServer()
    expect(await server.post('/tasks', { ...taskOf('add'), task_name: 7 })).toMatchObject({
      status: 400,
      body: {
        code: 'INVALID_TASK',
        error: 'body.task_name: got 7, expected a string.',
        details: { field: 'body.task_name' },
      },
    })
    expect(await server.post('/tasks', [])).toMatchObject({ status: 400, body: { code: 'INVALID_TASK' } })
    expect(await server.post('/tasks', '{"task_name":')).toMatchObject({
      status: 400,
      body: { code: 'MALFORMED_JSON' },
    })
    expect(server.taskManager.listTasks()).toEqual([])
  })

  it('refuses unknown fields in every part of a request, with the nearest name', async () => {
    const server = await startTestServer()
    const problemOf = async (asked: Promise<{ status: number; body: unknown }>) => {
      const { status, body } = await asked
      return [status, (body as { error: string }).error]
    }
    expect(await problemOf(server.post('/tasks', { ...taskOf('add'), instance: 'staging' }))).toEqual([
      400,
      'body.instance: got "staging", expected a known field; the nearest is instanceId.',
    ])
    const commands = [{ tool_name: 'add', arguments: { a: 1, b: 2 } }]
    expect((await problemOf(server.post('/tasks', { task_name: 't', commands })))[1]).toContain('commands[0].arguments')
    expect((await problemOf(server.post('/register', { instance: 'x' })))[1]).toContain('the nearest is instanceId')
    expect((await problemOf(server.call('/tasks?stats=running')))[1]).toContain('the nearest is status')
    expect(server.taskManager.listTasks()).toEqual([])
  })

  it('reads a body that begins with a byte order mark', async () => {
    const server = await startTestServer()
    expect(await server.post('/tasks', `\uFEFF${JSON.stringify(taskOf('add'))}`)).toMatchObject({ status: 201 })
    expect(await server.post('/tasks', `\uFEFF\uFEFF{}`)).toMatchObject({
      status: 400,
      body: { code: 'MALFORMED_JSON' },
    })
  })

  it('answers 400 to a task without commands', async () => {
    const server = await startTestServer()
    expect(await server.post('/tasks', taskOf())).toEqual({
      status: 400,
      headers: expect.anything() as Headers,
      body: { error: 'Task must have at least one command', code: 'NO_COMMANDS' },
    })
  })

  it('answers 400 to more than 1,000 commands', async () => {
    const server = await startTestServer()
    const commands = Array.from({ length: 1001 }, () => ({ tool_name: 'add', args: {} }))
    expect(await server.post('/tasks', { task_name: 'many', commands })).toMatchObject({
      status: 400,
      body: { code: 'INVALID_TASK' },
    })
    commands.pop()
    expect(await server.post('/tasks', { task_name: 'many', commands })).toMatchObject({ status: 201 })
  })

  it('answers 400 to JSON that is nested too deep', async () => {
    const server = await startTestServer()
    const deep =
      '{"task_name":"a","commands":[{"tool_name":"add","args":{"a":' + '['.repeat(61) + ']'.repeat(61) + '}}]}'
    expect(await server.post('/tasks', deep)).toMatchObject({ status: 400, body: { code: 'TOO_DEEP' } })
    expect(await server.post('/tasks', '['.repeat(500_000))).toMatchObject({ status: 400, body: { code: 'TOO_DEEP' } })
    expect(await server.post('/tasks', deep.replace('[[', '[').replace(']]', ']'))).toMatchObject({ status: 201 })
  })

  it('keeps the connection after 413 when it has read the body, and says so when it has not', async () => {
    const server = await startTestServer()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const over = 2 * 1024 * 1024
    const first = await postWith(agent, server, 'x'.repeat(over))
    const next = await postWith(agent, server, '{}')
    expect([first.status, first.connection, next.status, next.isReused]).toEqual([413, 'keep-alive', 400, true])
    const chunked = await postWith(agent, server, 'x'.repeat(over), { 'transfer-encoding': 'chunked' })
    expect([chunked.status, chunked.connection]).toEqual([413, 'keep-alive'])
    const huge = await postWith(agent, server, '', { 'content-length': String(1024 * over) })
    expect([huge.status, huge.connection, huge.body]).toEqual([413, 'close', expect.stringContaining('BODY_TOO_LARGE')])
    expect(await postWith(agent, server, '{}')).toMatchObject({ status: 400, isReused: false })
  })

  it('answers 413 to a body that does not end, and closes the connection', async () => {
    const server = await startTestServer()
    const sent = request(`${server.httpUrl}/tasks`, { method: 'POST', headers: { 'content-type': 'application/json' } })
    // The server may close the connection while the client writes.
    sent.on('error', () => undefined)
    const answered = once(sent, 'response')
    const piece = 'x'.repeat(1024 * 1024)
    for (let count = 0; count < 18; count += 1) sent.write(piece)
    const [response] = (await answered) as [IncomingMessage]
    expect([response.statusCode, response.headers.connection]).toEqual([413, 'close'])
    sent.destroy()
  })

  it('answers 413 to a body over the limit, with or without content-length', async () => {
    const server = await startTestServer({ limits: { bodyBytes: 2000 } })
    const large = { ...taskOf('add'), metadata: { text: 'x'.repeat(2000) } }
    expect(await server.post('/tasks', large)).toMatchObject({ status: 413, body: { code: 'BODY_TOO_LARGE' } })
    const stream = new Blob([JSON.stringify(large)]).stream()
    const init = {
      method: 'POST',
      body: stream,
      duplex: 'half' as const,
      headers: { 'content-type': 'application/json' },
    }
    expect(await server.call('/tasks', init)).toMatchObject({ status: 413, body: { code: 'BODY_TOO_LARGE' } })
    expect(await server.post('/tasks', taskOf('add'))).toMatchObject({ status: 201 })
  })

  it('answers 415 to a body of another content type, such as the form of a foreign page', async () => {
    const server = await startTestServer()
    const sent = await server.post('/tasks', taskOf('add'), { 'content-type': 'text/plain' })
    expect(sent).toMatchObject({ status: 415, body: { code: 'UNSUPPORTED_MEDIA_TYPE' } })
  })

  it('answers 404 for an unknown instance, 409 for one that has not connected', async () => {
    const server = await startTestServer()
    const registered = await server.post('/register', {})
    expect(await server.post('/tasks', { ...taskOf('add'), instanceId: 'nobody' })).toMatchObject({
      status: 404,
      body: { code: 'INVALID_INSTANCE' },
    })
    expect(await server.post('/tasks', { ...taskOf('add'), instanceId: registered.body['instanceId'] })).toMatchObject({
      status: 409,
      body: { code: 'NOT_CONNECTED' },
    })
  })

  it('S8: answers 429 when the queue is full of live tasks, and 201 after one was cancelled', async () => {
    const server = await startTestServer({ tasks: { maxQueueSize: 2 } })
    await server.post('/tasks', taskOf('hold'))
    const second = await server.post('/tasks', taskOf('hold'))
    expect(await server.post('/tasks', taskOf('add'))).toMatchObject({
      status: 429,
      body: { code: 'QUEUE_FULL', error: 'Task queue is full (max 2, maxQueueSize)' },
    })
    await server.post(`/tasks/${String(second.body['taskId'])}/cancel`)
    expect(await server.post('/tasks', taskOf('add'))).toMatchObject({ status: 201, body: { queuePosition: 2 } })
  })

  it('answers 503 without an instance, and when tasks are disabled', async () => {
    const none = await startTestServer({ instances: [] })
    expect(await none.post('/tasks', taskOf('add'))).toMatchObject({ status: 503, body: { code: 'NO_INSTANCE' } })
    const disabled = await startTestServer({ tasks: { enabled: false } })
    expect(await disabled.post('/tasks', taskOf('add'))).toMatchObject({
      status: 503,
      body: { code: 'TASKS_DISABLED' },
    })
    expect(disabled.wsUrl).toBe(`${disabled.httpUrl.replace('http', 'ws')}/ws`)
  })
})

describe('GET /tasks', () => {
  it('lists newest first, in the documented shape', async () => {
    const server = await startTestServer()
    await server.post('/tasks', taskOf('hold'))
    await server.held()
    await server.post('/tasks', { ...taskOf('add', 'add'), task_name: 'second' })
    const { status, body } = await server.call('/tasks')
    expect(status).toBe(200)
    expect(body).toEqual({
      wsEndpoint: server.wsUrl,
      tasks: [
        {
          id: expect.stringMatching(/_2$/) as string,
          name: 'second',
          intention: 'to be run',
          status: 'queued',
          instanceId: 'calc',
          currentCommandIndex: 0,
          totalCommands: 2,
          finishedCommands: 0,
          createdAt: expect.any(Number) as number,
        },
        expect.objectContaining({
          name: 'a task',
          status: 'running',
          totalCommands: 1,
          startedAt: expect.any(Number) as number,
        }),
      ],
    })
  })

  it('filters by instance and status', async () => {
    const server = await startTestServer()
    await server.post('/tasks', taskOf('hold'))
    await server.held()
    await server.post('/tasks', taskOf('add'))
    const count = async (query: string): Promise<number> =>
      ((await server.call(`/tasks?${query}`)).body['tasks'] as unknown[]).length
    expect(await count('status=queued')).toBe(1)
    expect(await count('status=running&instanceId=calc')).toBe(1)
    expect(await count('instanceId=other')).toBe(0)
    expect(await count('status=all')).toBe(await count(''))
    expect(await count('status=all&instanceId=other')).toBe(0)
  })

  it('pages without repeating or missing a task, whatever is submitted or removed meanwhile', async () => {
    const server = await startTestServer({ tasks: { maxRetained: 4 } })
    for (let count = 0; count < 5; count += 1) await server.post('/tasks', taskOf('hold'))
    const first = await server.call('/tasks?limit=2')
    const ids = (page: typeof first): string[] =>
      (page.body['tasks'] as { id: string }[]).map(({ id }) => id.split('_')[2]!)
    expect(ids(first)).toEqual(['5', '4'])
    await server.post('/tasks', taskOf('hold'))
    // Ended tasks beyond four are forgotten: the one at the cursor among them.
    for (const { id } of server.taskManager.listTasks().reverse()) await server.post(`/tasks/${id}/cancel`)
    const second = await server.call(`/tasks?limit=2&cursor=${String(first.body['nextCursor'])}`)
    expect(ids(second)).toEqual(['3'])
    expect(second.body).not.toHaveProperty('nextCursor')
  })

  it('has 100 tasks in a page, or up to 1,000, each with the longest texts in fewer than 12,000 characters', async () => {
    const server = await startTestServer({ tasks: { maxQueueSize: 2000 } })
    const longest = {
      task_name: 'n'.repeat(1000),
      task_intention: 'i'.repeat(10_000),
      metadata: { note: 'm'.repeat(100_000) },
      commands: [{ tool_name: 'hold', intention: 'c'.repeat(1000), args: { filler: 'a'.repeat(1000) } }],
    }
    for (let count = 0; count <= 1000; count += 1) server.taskManager.submitTask(longest)
    const pages = await Promise.all(['', '?limit=1000'].map((query) => server.call(`/tasks${query}`)))
    for (const [index, { body }] of pages.entries()) {
      const tasks = body['tasks'] as object[]
      expect(tasks).toHaveLength([100, 1000][index]!)
      expect(body).toHaveProperty('nextCursor')
      expect(JSON.stringify(body).length).toBeLessThan(tasks.length * 12_000)
    }
  })

  it('returns opaque cursors, and refuses all others', async () => {
    const [server, restarted] = [await startTestServer(), await startTestServer()]
    for (const one of [server, server, restarted, restarted]) await one.post('/tasks', taskOf('add'))
    const { body } = await server.call('/tasks?limit=1')
    const cursor = String(body['nextCursor'])
    const altered = `${cursor.slice(0, -2)}${cursor.endsWith('AC') ? 'AD' : 'AC'}`
    expect((await server.call(`/tasks?cursor=${cursor}`)).status).toBe(200)
    for (const [target, wrong] of [
      ...[[server, '2'] as const, [server, altered] as const],
      [restarted, cursor] as const,
    ]) {
      expect([wrong, await target.call(`/tasks?cursor=${wrong}`)]).toEqual([
        wrong,
        expect.objectContaining({
          status: 400,
          body: expect.objectContaining({ code: 'INVALID_CURSOR' }) as unknown,
        }),
      ])
    }
  })

  it.each(['status=done', 'limit=0', 'limit=1001', 'limit=ten', 'cursor=%2F', 'cursor=', 'instanceId='])(
    'answers 400 to %s',
    async (query) => {
      const server = await startTestServer()
      expect(await server.call(`/tasks?${query}`)).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
    },
  )
})

describe('GET /tasks/:id and POST /tasks/:id/cancel', () => {
  it('answers 200 with the task, and 404 for an unknown one', async () => {
    const server = await startTestServer()
    const { body } = await server.post('/tasks', { ...taskOf('hold', 'add'), metadata: { by: 'test' } })
    await server.held()
    const found = await server.call(`/tasks/${String(body['taskId'])}`)
    expect(found).toMatchObject({
      status: 200,
      body: {
        task: {
          id: body['taskId'],
          status: 'running',
          metadata: { by: 'test' },
          commands: [{ status: 'running' }, { status: 'pending' }],
        },
      },
    })
    expect(await server.call('/tasks/task_0_zz')).toMatchObject({
      status: 404,
      body: { error: 'Task not found', code: 'TASK_NOT_FOUND', details: { taskId: 'task_0_zz' } },
    })
  })

  it('answers 200 once, then 409, and 404 for an unknown task', async () => {
    const server = await startTestServer()
    const { body } = await server.post('/tasks', taskOf('hold'))
    const taskId = String(body['taskId'])
    const { signal } = await server.held()
    expect(await server.post(`/tasks/${taskId}/cancel`)).toMatchObject({ status: 200, body: { success: true, taskId } })
    expect(signal.aborted).toBe(true)
    expect(await server.post(`/tasks/${taskId}/cancel`)).toMatchObject({
      status: 409,
      body: { success: false, taskId, code: 'TASK_ENDED', error: 'Task already cancelled' },
    })
    expect(await server.post('/tasks/nothing/cancel')).toMatchObject({
      status: 404,
      body: { code: 'TASK_NOT_FOUND', details: { taskId: 'nothing' } },
    })
  })
})

describe('the other routes', () => {
  it('lists instances with their tools and queues', async () => {
    const server = await startTestServer()
    await server.post('/tasks', taskOf('hold'))
    const { status, body } = await server.call('/instances')
    expect(status).toBe(200)
    expect(body['instances']).toEqual([
      {
        id: 'calc',
        kind: 'local',
        isConnected: true,
        queued: 1,
        connectedAt: expect.any(Number) as number,
        lastActivity: expect.any(Number) as number,
        tools: expect.arrayContaining([expect.objectContaining({ name: 'add' })]) as unknown,
      },
    ])
  })

  it('registers a worker under the id it asks for, once', async () => {
    const server = await startTestServer()
    const registered = await server.post('/register', { instanceId: 'worker-1' })
    expect(registered).toMatchObject({
      status: 201,
      body: {
        instanceId: 'worker-1',
        secret: expect.any(String) as string,
        websocketUrl: `${server.httpUrl.replace('http', 'ws')}/worker`,
      },
    })
    expect(await server.post('/register', { instanceId: 'worker-1' })).toMatchObject({
      status: 409,
      body: { code: 'INSTANCE_ID_IN_USE' },
    })
    expect(await server.post('/register', { instanceId: 'a b' })).toMatchObject({
      status: 400,
      body: { code: 'INVALID_REQUEST' },
    })
    expect(await server.post('/register')).toMatchObject({ status: 201 })
  })

  it('answers /health, with what is connected', async () => {
    const server = await startTestServer({ auth: { tokens: ['t'] } })
    await server.client()
    expect((await server.call('/health')).body).toEqual({
      status: 'ok',
      version: '0.1.0',
      connectedInstances: 1,
      taskClients: 1,
      sseClients: 0,
      auth: 'enabled',
      tls: 'disabled',
      rateLimit: 'enabled',
      rateLimitMax: 60_000,
    })
  })

  it('lists when a worker was last heard of, its port and its program', async () => {
    const server = await startTestServer()
    const { body } = await server.post('/register', { instanceId: 'w' })
    const worker = await openSocket(String(body['websocketUrl']), { headers: { 'user-agent': 'a worker' } })
    worker.send({ type: 'hello', instanceId: 'w', secret: body['secret'] })
    await worker.skipTo('welcome')
    const listed = async () => ((await server.call('/instances')).body['instances'] as Record<string, unknown>[])[1]!
    expect(await listed()).toMatchObject({
      id: 'w',
      port: Number(new URL(server.httpUrl).port),
      userAgent: 'a worker',
      connectedAt: expect.any(Number) as number,
      lastActivity: expect.any(Number) as number,
    })
    expect(await listed()).not.toHaveProperty('address')
  })

  it('leads from / to the documentation and the page: as HTML for browsers, as JSON for others', async () => {
    const pageUrl = 'http://127.0.0.1:3320/?a=1&b="'
    const server = await startTestServer({ auth: { tokens: ['t'] }, pageUrl: () => pageUrl })
    const page = await server.call('/', { headers: { accept: 'text/html,*/*;q=0.8' } })
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=UTF-8'])
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(page.body['text']).toContain('<a href="/docs">')
    expect(page.body['text']).toContain('<a href="http://127.0.0.1:3320/?a=1&#38;b=&#34;">')
    const info = await server.call('/info')
    expect(info).toMatchObject({
      status: 200,
      body: {
        name: 'agent-tasks',
        version: '0.1.0',
        auth: { required: true, method: 'Bearer token' },
        endpoints: {
          docs: `${server.httpUrl}/docs`,
          page: pageUrl,
          rest_api: { execute_tool: `${server.httpUrl}/api/tools/{toolName}` },
        },
        websocket: { protocol: 'ws', host: '127.0.0.1', port: Number(new URL(server.wsUrl).port), url: server.wsUrl },
      },
    })
    expect((await server.call('/')).body).toEqual(info.body)
    expect((await (await startTestServer()).call('/')).body['endpoints']).not.toHaveProperty('page')
  })

  it('serves a self-contained documentation page', async () => {
    const server = await startTestServer()
    const { status, body, headers } = await server.call('/docs')
    expect(status).toBe(200)
    const policy = headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'")
    const [, script = ''] = /<script>([^]*)<\/script>/.exec(String(body['text'])) ?? []
    expect(() => new Script(script)).not.toThrow()
    expect(policy).toContain(`script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`)
    expect(String(body['text'])).not.toMatch(/(src|href)="?(https?:)?\/\//)
  })

  it('answers 404 as JSON for an unknown route', async () => {
    const server = await startTestServer()
    expect(await server.call('/nothing')).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
    expect(await server.call('/tasks', { method: 'DELETE' })).toMatchObject({
      status: 405,
      body: { code: 'METHOD_NOT_ALLOWED', error: 'DELETE is not possible for "/tasks": use GET or HEAD or POST' },
    })
  })

  it('names the methods of a path in Allow', async () => {
    const server = await startTestServer()
    const allowOf = async (method: string, path: string) => {
      const { status, headers } = await server.call(path, { method })
      return [status, headers.get('allow')]
    }
    expect(await allowOf('PUT', '/tasks/task_1_1')).toEqual([405, 'GET, HEAD'])
    expect(await allowOf('DELETE', '/tasks')).toEqual([405, 'GET, HEAD, POST'])
    expect(await allowOf('GET', '/tasks/task_1_1/cancel')).toEqual([405, 'POST'])
    expect(await allowOf('PUT', '/nothing')).toEqual([404, null])
  })
})

interface Posted {
  readonly status: number | undefined
  readonly connection: string | undefined
  readonly body: string
  /** Whether it was sent on a connection that had been used before. */
  readonly isReused: boolean
}

/** Uses node:http because fetch hides the connection. */
function postWith(
  agent: Agent,
  { httpUrl }: TestServer,
  body: string,
  headers: Record<string, string> = {},
): Promise<Posted> {
  return new Promise((resolve, reject) => {
    const type = { 'content-type': 'application/json', ...headers }
    const sent = request(`${httpUrl}/tasks`, { method: 'POST', agent, headers: type }, (response) => {
      void text(response).then((received) => {
        const { statusCode: status, headers: answered } = response
        resolve({ status, connection: answered.connection, body: received, isReused: sent.reusedSocket })
        if (body === '') sent.destroy()
      }, reject)
    })
    sent.on('error', reject)
    if (body === '') sent.flushHeaders()
    else sent.end(body)
  })
}
