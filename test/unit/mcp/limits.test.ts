/** What one client can take from the others, and make the server hold. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { localInstance } from '../../../src/command-tasks/instances/local-instance.js'
import { listenWith } from '../../../src/mcp/http.js'
import { until } from '../../support/lifelines.js'
import { openSession } from '../../support/mcp-sessions.js'
import { controlled, overHttp, overStdio, textOf, type Called } from './clients.js'
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
    const open = (token: string) => openSession(server.url, token)
    const opened = await Promise.all(Array.from({ length: 101 }, () => open('one')))
    expect(opened.filter(([status]) => status === 200)).toHaveLength(100)
    expect(opened.find(([status]) => status === 503)?.[1]).toContain('This token has too many sessions (100).')
    expect((await open('two'))[0]).toBe(200)
  })
})

describe('tasks/result', () => {
  it('waits for 1,000 results of a client at most', async () => {
    const { say, ask, initialize, answers, end } = overStdio()
    await initialize()
    const call = { name: 'task', arguments: { subagent_name: 'slow', goal_prompt: 'g' }, task: {} }
    const { task } = (await ask(1, 'tools/call', call)) as unknown as { task: { taskId: string } }
    const params = { taskId: task.taskId }
    for (let id = 1000; id < 2000; id += 1) say({ id, method: 'tasks/result', params })
    expect(await ask(2, 'tasks/result', params)).toMatchObject({
      code: -32600,
      message: 'A client can wait for 1000 results at once with tasks/result. Wait until one has ended, or cancel one.',
    })
    say({ method: 'notifications/cancelled', params: { requestId: 1000 } })
    say({ id: 3, method: 'tasks/result', params })
    await ask(4, 'ping', {})
    expect(answers.has(3)).toBe(false)
    end(task.taskId, 'done')
    await until(() => answers.has(3) && answers.has(1999))
    expect(textOf(answers.get(3)!)).toContain('done')
  })

  it('of tasks that have ended are answered also at the limit, and what has ended or was cancelled no longer waits', async () => {
    const { say, ask, initialize, answers, end } = overStdio({ maxAsyncTasks: -1 })
    await initialize()
    const call = { name: 'task', arguments: { subagent_name: 'slow', goal_prompt: 'g' }, task: {} }
    const create = async (id: number): Promise<string> =>
      ((await ask(id, 'tools/call', call)) as unknown as { task: { taskId: string } }).task.taskId
    const [running, ended] = [await create(1), await create(2)]
    end(ended, 'done')
    for (let round = 0; round < 2; round += 1) {
      const first = 10_000 * (round + 1)
      for (let id = first; id < first + 1000; id += 1) say({ id, method: 'tasks/result', params: { taskId: running } })
      expect(await ask(first + 1000, 'tasks/result', { taskId: running })).toMatchObject({ code: -32600 })
      expect(textOf(await ask(first + 1001, 'tasks/result', { taskId: ended }))).toContain('done')
      if (round === 1) break
      for (let id = first; id < first + 1000; id += 1) {
        say({ method: 'notifications/cancelled', params: { requestId: id } })
      }
      await ask(first + 1002, 'ping', {})
    }
    end(running, 'at last')
    await until(() => answers.has(20_999))
    expect(textOf(answers.get(20_999)!)).toContain('at last')
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

  it('over HTTP without a session is a request of at most 65,536 characters', async () => {
    const { server } = await overHttp()
    const listen = async (chars: number): Promise<number> => {
      const bodyOf = (uri: string) =>
        JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'subscriptions/listen',
          params: { notifications: { resourceSubscriptions: [uri] } },
        })
      const response = await fetch(server.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: bodyOf('x'.repeat(chars - bodyOf('').length)),
      })
      await response.body?.cancel()
      return response.status
    }
    expect(await listen(65_537)).toBe(413)
    expect(await listen(65_536)).not.toBe(413)
  })
})

describe('an image that a command returned', () => {
  const shot = (data: string) => ({ type: 'image', data, mimeType: 'image/png' })
  const look = (times: number) => ({
    task_name: 'Look',
    commands: Array.from({ length: times }, () => ({ tool_name: 'shot' })),
  })
  const COMMANDS = look(2)

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

  it('is left out when it is not base64: the answer would be refused, with the results that it has', async () => {
    const { use } = withCamera('not base64!')
    const answer = await use('submit_commands', { ...COMMANDS, async: false })
    expect(imagesOf(answer)).toEqual([])
    expect(answer.content[0]!.text).toContain('completed')
  })

  it('is one of the last eight', async () => {
    const { use } = withCamera('aGk=')
    const answer = await use('submit_commands', { ...look(9), async: false })
    expect(imagesOf(answer)).toHaveLength(8)
    expect(answer.content.map(({ text = '' }) => text).join('\n')).toContain('The last 8 of the 9 images')
  })

  it('is left out, in words, if the images have more than 4 MiB of base64', async () => {
    const half = withCamera('x'.repeat(2 * 1024 * 1024))
    expect(imagesOf(await half.use('submit_commands', { ...COMMANDS, async: false }))).toHaveLength(2)
    const { use } = withCamera('x'.repeat(2 * 1024 * 1024 + 4))
    const answer = await use('submit_commands', { ...COMMANDS, async: false })
    expect(imagesOf(answer)).toHaveLength(1)
    expect(answer.content.map(({ text = '' }) => text).join('\n')).toContain('The last 1 of the 2 images')
  })
})

describe('schedules and monitors', () => {
  it('F16: are limited for each client, however many sessions it opens', async () => {
    const { call, launch } = setUp({ schedules: { maxPerOwner: 2 }, monitors: { maxPerOwner: 2 } })
    const sessionOf = (letter: string, session: number) => ({
      owner: `client-${letter.repeat(16)}/session-${session}`,
      isAnonymous: false,
    })
    const messages = async (name: string, args: (caller: typeof ALICE) => Promise<object> | object) => {
      const texts: string[] = []
      for (const caller of [sessionOf('a', 1), sessionOf('a', 2), sessionOf('a', 3), sessionOf('b', 1)]) {
        texts.push(textOf((await call(name, await args(caller), {}, caller)).result as unknown as Called))
      }
      return texts.map((text) => /Max .* reached/.exec(text)?.[0])
    }
    expect(await messages('schedule', () => ({ message: 'wake up', in_seconds: 60 }))).toEqual([
      undefined,
      undefined,
      'Max schedules of an owner (2, schedules.maxPerOwner) reached',
      undefined,
    ])
    const watch = async (caller: typeof ALICE) => {
      await launch(caller)
      return { task_id: 'slow', match: 'error' }
    }
    expect(await messages('monitor', watch)).toEqual([
      undefined,
      undefined,
      'Max monitors of one owner (2, monitors.maxPerOwner) reached',
      undefined,
    ])
  })
})
