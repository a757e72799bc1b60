/** Who may see the page and what it knows: G1. */
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import { TaskManager } from 'agent-tasks/server'
import { createTaskPage } from '../../../src/page/index.js'
import { startPage } from './test-page.js'
import { InvalidInputError, InvalidSettingError } from '../../../src/errors.js'

const secret = 'the goal of the secret task'

async function withTask() {
  const manager = new AsyncTaskManager()
  manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: secret })
  return { manager, ...(await startPage({ tasks: manager })) }
}

const routes: readonly (readonly [string, string])[] = [
  ['GET', '/api/events'],
  ['GET', '/api/tasks/async:a'],
  ['GET', '/api/tasks/async:a/value/goal'],
  ['GET', '/api/tasks/async:a/image/0'],
  ['GET', '/api/tasks/async:a/output'],
  ['POST', '/api/tasks/async:a/cancel'],
  ['POST', '/api/tasks/async:a/run-again'],
  ['POST', '/api/tasks/async:a/answer'],
  ['POST', '/api/tasks/async:a/message'],
  ['POST', '/api/instances/calc/submit'],
  ['GET', '/api/nothing'],
]

describe('a request', () => {
  it.each(routes)('G1: %s %s without the token, or with a wrong one, gets nothing', async (method, path) => {
    const { raw, manager, token } = await withTask()
    const wrong = [
      {},
      { authorization: 'Bearer wrong' },
      { authorization: `Basic ${token}` },
      { cookie: `token=${token}` },
    ]
    for (const headers of wrong) {
      const { status, text } = await raw(path, headers, method)
      expect([status, JSON.parse(text)]).toEqual([401, { error: expect.any(String) as unknown, code: 'UNAUTHORIZED' }])
      expect(text).not.toContain(secret)
    }
    expect(manager.getTask('a')?.status).toBe('running')
  })

  it.each([...routes, ['GET', '/'] as const])(
    'G1: %s %s of a foreign host or page gets nothing',
    async (method, path) => {
      const { raw, manager, authorization, base } = await withTask()
      const foreign = [
        { host: 'evil.example' },
        { host: 'evil.example:3320' },
        { origin: 'https://evil.example' },
        { origin: 'http://127.0.0.1:1' },
        { origin: 'null' },
        { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'empty' },
      ]
      for (const headers of foreign) {
        const { status, text } = await raw(path, { authorization, ...headers }, method)
        expect(status).toBe(403)
        expect(text).not.toContain(secret)
      }
      expect(manager.getTask('a')?.status).toBe('running')
      expect((await raw('/api/tasks/async:a', { authorization, origin: base })).status).toBe(200)
    },
  )

  it('G1: its answer lets no other page read, frame or run it', async () => {
    const { raw, authorization } = await withTask()
    for (const path of ['/', '/api/tasks/async:a', '/no/such/file']) {
      const { headers } = await raw(path, { authorization })
      expect(headers).toMatchObject({
        'content-security-policy': expect.stringMatching(
          /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'/,
        ) as unknown,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      })
      expect(headers).not.toHaveProperty('access-control-allow-origin')
    }
  })

  it.each(['/no/such/file', '/../package.json', '/%2e%2e/package.json', '/assets/../../package.json', '//etc/passwd'])(
    '%s is not found',
    async (path) => {
      const { base, raw } = await withTask()
      expect((await fetch(base + path)).status).toBe(404)
      // As it is, which fetch would tidy.
      const url = new URL(base)
      const socket = connect(Number(url.port), url.hostname)
      socket.end(`GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: close\r\n\r\n`)
      let text = ''
      for await (const chunk of socket) text += String(chunk)
      expect(text).toMatch(/^HTTP\/1.1 404 /)
      expect((await raw(path, {}, 'POST')).status).toBe(405)
    },
  )

  it('for a path that cannot be decoded is not found', async () => {
    const { raw, authorization } = await withTask()
    expect((await raw('/api/tasks/%E0%A4%A', { authorization })).status).toBe(404)
    expect((await raw('//', { authorization })).status).toBe(404)
    expect((await raw('/api/tasks/async:a', { authorization }, 'DELETE')).status).toBe(405)
  })
})

describe('createTaskPage', () => {
  it('makes a token that nobody can guess, and puts it into the fragment', async () => {
    const [one, other] = [await withTask(), await withTask()]
    expect(one.page.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]{32}$/)
    expect(one.token).not.toBe(other.token)
  })

  it.each([
    [{}, InvalidInputError, 'options.tasks'],
    [{ tasks: {} }, InvalidInputError, 'options.tasks'],
    [{ tasks: { getAsyncTaskManager: () => 1 } }, InvalidInputError, 'options.tasks'],
    [{ taskManager: {} }, InvalidInputError, 'options.taskManager'],
    // Their private fields are missing.
    [{ taskManager: Object.create(TaskManager.prototype) as unknown }, InvalidInputError, 'options.taskManager'],
    [{ tasks: Object.create(AsyncTaskManager.prototype) as unknown }, InvalidInputError, 'options.tasks'],
    [{ prot: 1 }, InvalidInputError, 'options.prot'],
    [{ port: -1 }, InvalidSettingError, 'port'],
    [{ port: 65_536 }, InvalidSettingError, 'port'],
    [{ maxTasks: 0 }, InvalidSettingError, 'maxTasks'],
    [{ host: '0.0.0.0' }, InvalidSettingError, 'host'],
    [{ hints: 'shell' }, InvalidInputError, 'options.hints'],
    [{ token: 'short' }, InvalidInputError, 'options.token'],
    [{ token: 'with a space in the middle' }, InvalidInputError, 'options.token'],
    [{ onError: 1 }, InvalidInputError, 'options.onError'],
  ])('refuses %j, and names the option', async (options, type, field) => {
    const tasks = 'tasks' in options || Object.keys(options).length === 0 ? {} : { tasks: new AsyncTaskManager() }
    const refused = createTaskPage({ ...tasks, ...options } as never)
    await expect(refused).rejects.toThrow(type)
    await expect(refused).rejects.toThrow(field)
  })

  it('refuses a port that is in use, and leaves nothing behind', async () => {
    const { page } = await withTask()
    const { port } = new URL(page.url)
    await expect(createTaskPage({ tasks: new AsyncTaskManager(), port: Number(port) })).rejects.toThrow(
      new InvalidSettingError('port', Number(port), 'a port that is free, or 0 to pick one'),
    )
  })

  it('closes once, with its streams, and leaves the tasks alone', async () => {
    const { page, read, manager, base } = await withTask()
    const reader = await read()
    await reader.until(({ ready }) => ready !== undefined)
    await Promise.all([page.close(), page.close(), page[Symbol.asyncDispose]()])
    await reader.ended
    await expect(fetch(base)).rejects.toThrow()
    expect(manager.getTask('a')?.status).toBe('running')
    manager.completeTask('a', {})
  })
})
