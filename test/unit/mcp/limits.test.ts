/** What one client can take from the others, and make the server hold. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { localInstance } from '../../../src/instances/local-instance.js'
import { listenWith } from '../../../src/mcp/http.js'
import { until } from '../../support/lifelines.js'
import { controlled, overHttp, overStdio, type Called } from './clients.js'
import { ALICE, BOB, setUpApp, TASKS } from './wire.js'

function setUp(config = {}) {
  const subagent = controlled()
  const host = setUpApp({ slow: subagent.run }, config)
  onTestFinished(() => host.app.close())
  const launch = async (caller = ALICE, more: object = { async: true }, capabilities: object = {}): Promise<Called> => {
    const args = { subagent_name: 'slow', goal_prompt: 'g', ...more }
    return (await host.call('task', args, capabilities, caller)).result as unknown as Called
  }
  return { ...host, ...subagent, launch }
}

describe('maxAsyncTasks', () => {
  it('is the limit of each client', async () => {
    const { launch, manager, end } = setUp({ maxAsyncTasks: 2 })
    const launched = await Promise.all([1, 2, 3, 4].map(() => launch()))
    const refused = launched.filter(({ content }) => content[0]!.text.startsWith('Max async tasks (2) reached.'))
    expect(refused).toHaveLength(2)
    expect(manager.getRunningTasks('alice')).toHaveLength(2)
    await launch(BOB)
    expect(manager.getRunningTasks('bob')).toHaveLength(1)
    end(manager.getRunningTasks('alice')[0]!.id, 'done')
    await until(() => manager.getRunningTasks('alice').length === 1)
    await launch()
    expect(manager.getRunningTasks('alice')).toHaveLength(2)
  })

  it('counts tasks with a handle, and not those that run in place until they continue in the background', async () => {
    const { launch, manager, clock } = setUp({ maxAsyncTasks: 1 })
    const inPlace = launch(ALICE, {})
    await until(() => manager.getRunningTasks('alice').length === 1)
    expect(await launch(ALICE, {}, TASKS)).toHaveProperty('taskId')
    expect(await launch()).toMatchObject({ isError: true })
    clock.advance(45_000)
    await inPlace
    for (const { id } of manager.getRunningTasks('alice')) manager.cancelTask(id)
    expect(await launch()).not.toHaveProperty('isError')
  })

  it('of all clients together is 50, unless one may have more', async () => {
    expect(setUp().manager.getMaxAsyncTasks()).toBe(50)
    expect(setUp({ maxAsyncTasks: 80 }).manager.getMaxAsyncTasks()).toBe(80)
    expect(setUp({ maxAsyncTasks: -1 }).manager.getMaxAsyncTasks()).toBe(-1)
    const { launch } = setUp({ maxAsyncTasks: 5, maxAsyncTasksOfAllClients: 1 })
    await launch()
    expect((await launch(BOB)).content[0]!.text).toContain('Max async tasks (1) reached')
  })
})

describe('a session', () => {
  it('is refused to a token that has 100 of them, and open to others', async () => {
    const { app } = setUpApp({}, { http: { tokens: ['one', 'two'] } })
    const server = await listenWith(app, { port: 0 })
    onTestFinished(() => server.close())
    const open = async (token: string) => {
      const response = await fetch(server.url, {
        method: 'POST',
        headers: {
          ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
          authorization: `Bearer ${token}`,
        },
        body: JSON.stringify({
          ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
          params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
        }),
      })
      return [response.status, await response.text()] as const
    }
    const opened = await Promise.all(Array.from({ length: 101 }, () => open('one')))
    expect(opened.filter(([status]) => status === 200)).toHaveLength(100)
    expect(opened.find(([status]) => status === 503)?.[1]).toContain('This token has too many sessions (100).')
    expect((await open('two'))[0]).toBe(200)
  })
})

describe('a subscription', () => {
  it('is to a task of the client, and there are 1,000 of them at most', async () => {
    const { ask, initialize } = overStdio({ maxAsyncTasks: -1 })
    await initialize()
    for (const [index, uri] of ['x:'.padEnd(1_000_000, 'x'), 'task://nobody'].entries()) {
      const error = (await ask(10 + index, 'resources/subscribe', { uri })) as unknown as { message: string }
      expect(JSON.stringify(error).length).toBeLessThan(1000)
      expect(error).toMatchObject({ code: -32602 })
    }
    const uris: string[] = []
    for (let index = 0; index <= 1000; index += 1) {
      const call = { name: 'task', arguments: { subagent_name: 'slow', goal_prompt: 'g', async: true } }
      const { structuredContent } = await ask(1000 + index, 'tools/call', call)
      uris.push(`task://${structuredContent!['task_id'] as string}`)
    }
    for (let index = 0; index < 1000; index += 1) {
      expect(await ask(3000 + index, 'resources/subscribe', { uri: uris[index] })).toEqual({})
    }
    expect(await ask(5000, 'resources/subscribe', { uri: uris[1000] })).toMatchObject({
      message: expect.stringContaining('A client can subscribe to 1000 resources.') as unknown,
    })
    expect(await ask(5001, 'resources/subscribe', { uri: uris[1] })).toEqual({})
  })

  it('over HTTP without a session has at most 65,536 characters of URIs', async () => {
    const { server } = await overHttp()
    const response = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen' },
        params: { notifications: { resourceSubscriptions: ['task://'.padEnd(70_000, 'x')] } },
      }),
    })
    expect(response.status).toBe(413)
  })
})

describe('an image that a command returned', () => {
  const shot = (data: string) => ({ type: 'image', data, mimeType: 'image/png' })
  const COMMANDS = { task_name: 'Look', commands: [{ tool_name: 'shot' }, { tool_name: 'shot' }] }

  function withCamera(data: string) {
    const host = setUp()
    const tools = [{ name: 'shot', execute: () => ({ content: [shot(data)] }) }]
    host.backend.pool.instances.connect(localInstance({ id: 'camera', closeGraceMs: 0, tools }))
    const use = async (name: string, args: object) =>
      (await host.call(name, args, {})).result as unknown as { content: { type: string; text?: string }[] }
    return { ...host, use }
  }
  const imagesOf = ({ content }: { content: { type: string }[] }) => content.filter(({ type }) => type === 'image')

  it('is an image in the answer that has the result', async () => {
    const { use, manager, call, get } = withCamera('aGk=')
    expect(imagesOf(await use('submit_commands', { ...COMMANDS, async: false }))).toEqual([shot('aGk='), shot('aGk=')])
    await use('submit_commands', COMMANDS)
    await until(() => manager.getRunningTasks().length === 0)
    expect(imagesOf(await use('list_instances', {}))).toHaveLength(2)
    expect(imagesOf(await use('list_instances', {}))).toEqual([])
    const { result } = await call('submit_commands', { ...COMMANDS, async: false }, TASKS)
    await until(() => manager.getRunningTasks().length === 0)
    expect(JSON.stringify((await get(result['taskId'] as string)).result['result'])).toContain('"type":"image"')
  })

  it('is left out, in words, if it makes the answer larger than 4 MB', async () => {
    const { use } = withCamera('x'.repeat(3_000_000))
    const answer = await use('submit_commands', { ...COMMANDS, async: false })
    expect(imagesOf(answer)).toHaveLength(1)
    expect(answer.content.map(({ text = '' }) => text).join('\n')).toContain('The last 1 of the 2 images')
  })
})
