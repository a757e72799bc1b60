/** `agent-tasks serve --connection URL`, twice on one Redis. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { startServer, type NodeProcess } from '../support/cluster.js'
import { call, post, until, untilEnded } from '../support/cluster-client.js'
import { startRedis } from '../support/redis-server.js'

const main = new URL('../../dist/src/cli/main.js', import.meta.url).pathname
const pids = new URL('../support/programs/pid-server.mjs', import.meta.url).pathname

const serve = (...args: string[]): Promise<NodeProcess> =>
  startServer([main, 'serve', '--port', '0', '--ws-port', '0', '--json', '--instance', `pids=node ${pids}`, ...args])

describe('serve --connection', () => {
  it('N4, N5: has one instance of a name, whose place another server takes when it dies', async () => {
    const redis = await startRedis({ appendfsync: 'no file' })
    onTestFinished(() => redis.close())
    const first = await serve('--connection', redis.url, '--public-url', 'http://127.0.0.1:1')
    expect(first.log.join('\n')).toContain('Set appendonly yes')
    const second = await serve('--connection', redis.url)
    const pidOf = async (url: string): Promise<string> => {
      const accepted = await until(async () => {
        const answer = await post(url, '/tasks', { task_name: 'p', commands: [{ tool_name: 'pid', args: {} }] })
        return answer.status === 201 && answer
      })
      const taskId = String(accepted.body['taskId'])
      expect(await untilEnded(url, taskId)).toMatchObject({ status: 'completed' })
      const { commands } = (await call(url, `/tasks/${taskId}`)).body['task'] as {
        commands: { result: { content: { text: string }[] } }[]
      }
      return String(commands[0]?.result.content[0]?.text)
    }
    const pid = await pidOf(first.httpUrl)
    expect(await pidOf(second.httpUrl)).toBe(pid)
    expect((await call(second.httpUrl, '/instances')).body['instances']).toMatchObject([{ id: 'pids', kind: 'mcp' }])
    const { body } = await post(first.httpUrl, '/tasks', { task_name: 'p', commands: [{ tool_name: 'pid', args: {} }] })
    expect(body['wsEndpoint']).toBe('ws://127.0.0.1:1/ws')
    await first.kill()
    expect(await pidOf(second.httpUrl)).not.toBe(pid)
    expect(await second.stop()).toBe(0)
  })

  it('says what is lost with everysec', async () => {
    const redis = await startRedis({ appendfsync: 'everysec' })
    onTestFinished(() => redis.close())
    const { log } = await serve('--connection', redis.url)
    expect(log.join('\n')).toContain('appendfsync: everysec: the writes of up to two seconds are lost')
  })

  it('is refused without a Redis that it may use, and options of a cluster without one', async () => {
    await expect(serve('--connection', 'redis://10.0.0.1:6379')).rejects.toThrow('a Redis with a password')
    await expect(serve('--public-url', 'http://127.0.0.1:1')).rejects.toThrow('--connection')
  })
})
