// The log: one line for each connection, disconnection, takeover, failed task and refused request, with ids.
import { describe, expect, it } from 'vitest'
import { createEventLines, MAX_LINES } from '../../../src/server/event-lines.js'
import { createLog } from '../../../src/server/http/log.js'
import type { TaskServerOptions } from '../../../src/server/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { openSocket } from '../../support/socket-client.js'
import { startTestServer, taskOf } from './test-server.js'
import { waitFor } from '../../support/wait-for.js'

async function startLogged(options: TaskServerOptions = {}) {
  const lines: string[] = []
  const server = await startTestServer({ logLevel: 'debug', writeLog: (line) => lines.push(line), ...options })
  const logged = (event: string): string[] =>
    lines
      .flatMap((line) => /^agent-tasks (?:info|debug): (.*)$/s.exec(line)?.[1] ?? [])
      .filter((line) => line.startsWith(event))
  return { server, lines, logged }
}

const connectWorker = async (
  server: Awaited<ReturnType<typeof startTestServer>>,
  instanceId: string,
  known?: string,
) => {
  const secret = known ?? String((await server.post('/register', { instanceId })).body['secret'])
  const socket = await openSocket(`${server.httpUrl.replace('http', 'ws')}/worker`)
  socket.send({ type: 'hello', instanceId, secret })
  await socket.skipTo('welcome')
  return { socket, secret }
}

describe('the log of a server', () => {
  it('has the connection, the takeover and the end of a worker, with the reason', async () => {
    const { server, logged } = await startLogged()
    const first = await connectWorker(server, 'w1')
    expect(logged('instance')).toEqual([
      'instance connected instance=calc kind=local',
      'instance connected instance=w1 kind=websocket address=127.0.0.1',
    ])
    const second = await connectWorker(server, 'w1', first.secret)
    expect(logged('instance taken')).toEqual(['instance taken over instance=w1 address=127.0.0.1'])
    await second.socket.close()
    await waitFor(() =>
      expect(logged('instance disc')).toEqual([
        'instance disconnected instance=w1 reason="its connection was closed."',
      ]),
    )
  })

  it('has a task that failed, with its instance, code and error, and no other task', async () => {
    const { server, logged } = await startLogged()
    const { body } = await server.post('/tasks', taskOf('blow'))
    await server.post('/tasks', taskOf('add'))
    await waitFor(() =>
      expect(server.taskManager.listTasks().map(({ status }) => status)).toEqual(['completed', 'failed']),
    )
    expect(logged('task')).toEqual([
      `task failed task=${String(body['taskId'])} instance=calc code=EXECUTION_ERROR command=cmd_1 error="It blew up."`,
    ])
    const { body: cancelled } = await server.post('/tasks', taskOf('hold'))
    await server.held()
    await server.post(`/tasks/${String(cancelled['taskId'])}/cancel`)
    await waitFor(() => expect(server.taskManager.listTasks(undefined, 'cancelled')).toHaveLength(1))
    expect(logged('task')).toHaveLength(1)
  })

  it('has what was refused: requests, upgrades, sockets, workers and tasks', async () => {
    const { server, logged } = await startLogged({ auth: { tokens: ['token'] } })
    await server.call('/tasks?secret=query', { headers: { authorization: 'Bearer wrong' } })
    await expect(openSocket(`${server.wsUrl}/nowhere`)).rejects.toThrow()
    const client = await server.client()
    client.send({ type: 'authenticate', token: 'wrong' })
    await client.closed
    const headers = { authorization: 'Bearer token' }
    const worker = await openSocket(`${server.httpUrl.replace('http', 'ws')}/worker`, { headers })
    worker.send({ type: 'hello', instanceId: 'w', secret: 'wrong' })
    await worker.closed
    await server.post('/tasks', { ...taskOf('add'), instanceId: 'nope' }, headers)
    expect(logged('refused')).toEqual([
      'refused request address=127.0.0.1 method=GET path="/tasks" status=401 code=UNAUTHORIZED',
      'refused request address=127.0.0.1 method=GET path="/nowhere" status=404 code=NOT_FOUND',
      'refused socket address=127.0.0.1 method=GET path="/" reason="Invalid token."',
      'refused worker address=127.0.0.1 reason="Unknown instance or wrong secret. Register again."',
      'refused task instance=nope code=INVALID_INSTANCE error="Instance not found: nope. Known instances: calc."',
      'refused request address=127.0.0.1 method=POST path="/tasks" status=404',
    ])
  })

  it('has clients at debug, and nothing of them at info', async () => {
    const { server, logged } = await startLogged()
    const client = await server.client()
    await client.close()
    await waitFor(() => expect(logged('client disc')).toHaveLength(1))
    const [, session] = /session=(\S+)/.exec(logged('client connected')[0] ?? '') ?? []
    expect(logged('client')).toEqual([
      `client connected session=${session} address=127.0.0.1`,
      `client disconnected session=${session} code=1005`,
    ])
    const quiet = await startLogged({ logLevel: 'info' })
    await (await quiet.server.client()).close()
    expect(quiet.logged('client')).toEqual([])
  })
})

describe('a line of the log', () => {
  const write = (level: 'info' | 'debug' = 'info') => {
    const [clock, lines] = [createManualClock(), [] as string[]]
    return {
      clock,
      lines,
      event: createEventLines(
        createLog(level, (line) => lines.push(line)),
        clock,
      ),
    }
  }

  it('is one line of a limited length, whatever a client chose', () => {
    const { lines, event } = write()
    event('info', 'refused task', {
      instance: 'a b\n=c \u001b[2J\u202e',
      error: 'x'.repeat(1000),
      absent: undefined,
      count: 3,
    })
    expect(lines).toEqual([
      `agent-tasks info: refused task instance="a b\\n=c \\u001b[2J\\u202e" error="${'x'.repeat(200)}…" count=3`,
    ])
  })

  it('is left out beyond 600 in a minute, and the next minute says how many were', () => {
    const { clock, lines, event } = write()
    for (let count = 0; count < MAX_LINES + 5; count += 1) event('info', 'refused request')
    // Those of another level do not count.
    event('debug', 'client connected')
    expect(lines).toHaveLength(MAX_LINES)
    clock.advance(60_000)
    event('info', 'instance connected')
    expect(lines.slice(MAX_LINES)).toEqual([
      'agent-tasks info: log shortened lines=5',
      'agent-tasks info: instance connected',
    ])
    clock.advance(60_000)
    event('info', 'instance connected')
    expect(lines).toHaveLength(MAX_LINES + 3)
  })

  it('is not cut at 200 characters, and a minute is over when it has passed', () => {
    const { clock, lines, event } = write()
    event('info', 'odd', { name: `${' '.repeat(199)}x`, plain: 'x'.repeat(200) })
    expect(lines).toEqual([`agent-tasks info: odd name="${' '.repeat(199)}x" plain=${'x'.repeat(200)}`])
    for (let count = 0; count < MAX_LINES; count += 1) event('info', 'refused request')
    expect(lines).toHaveLength(MAX_LINES)
    clock.advance(59_999)
    event('info', 'refused request')
    expect(lines).toHaveLength(MAX_LINES)
    clock.advance(1)
    event('info', 'instance connected')
    expect(lines.slice(MAX_LINES)).toEqual([
      'agent-tasks info: log shortened lines=2',
      'agent-tasks info: instance connected',
    ])
  })
})
