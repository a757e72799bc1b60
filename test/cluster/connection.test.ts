/** Connections to a real Redis that goes away and comes back. */
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openConnection, toRedisAddress } from '../../src/bullmq/connection.js'
import { checkRedis } from '../../src/bullmq/redis-checks.js'
import { startRedis, type RedisServerOptions } from '../support/redis-server.js'

async function connected(options?: RedisServerOptions, waits = true) {
  const server = await startRedis(options)
  const lines: string[] = []
  const redis = openConnection(toRedisAddress({ connection: server.url }), {
    use: 'test',
    waits,
    log: (line) => lines.push(line),
  })
  onTestFinished(async () => {
    redis.disconnect()
    await server.close()
  })
  const ready = (): Promise<void> => new Promise((resolve) => redis.once('ready', resolve))
  await ready()
  return { server, redis, lines, ready }
}

describe('a connection', () => {
  it('W6: comes back by itself when Redis was killed, says so once, and its commands have waited', async () => {
    const { server, redis, lines, ready } = await connected()
    await redis.set('key', 'value')
    const back = ready()
    await server.kill()
    const answer = redis.get('key')
    await new Promise<void>((resolve) => redis.once('error', () => resolve()))
    await server.start()
    await back
    expect(await answer).toBe('value')
    expect(lines).toEqual([
      expect.stringMatching(/^Redis at 127\.0\.0\.1:\d+ \(test\): .* Reconnecting until Redis is back\.$/),
      `Redis at 127.0.0.1:${server.port} (test) is back.`,
    ])
  })

  it('W6: sends nothing later than its sender knows, where commands do not wait', async () => {
    const { server, redis, ready } = await connected({}, false)
    const back = ready()
    await server.kill()
    await new Promise<void>((resolve) => redis.once('error', () => resolve()))
    await expect(redis.set('key', 'value')).rejects.toThrow()
    await server.start()
    await back
    expect(await redis.get('key')).toBeNull()
  })
})

describe('the checks of a Redis', () => {
  it('find a good one good', async () => {
    const { redis } = await connected({ appendfsync: 'always', password: 'secret' })
    expect((await checkRedis(redis)).map(({ state }) => state)).toEqual(['ok', 'ok', 'ok', 'ok'])
  })

  it('find that the password is wrong', async () => {
    const server = await startRedis({ password: 'secret' })
    onTestFinished(() => server.close())
    const redis = new Redis(server.url.replace(':secret@', ':wrong@'), { maxRetriesPerRequest: 0 })
    onTestFinished(() => redis.disconnect())
    redis.on('error', () => undefined)
    const detail = expect.stringMatching(/^Redis refuses this connection: (NOAUTH|WRONGPASS)/) as string
    expect(await checkRedis(redis)).toEqual([{ check: 'access', state: 'unusable', detail }])
  })

  it('find what would be lost', async () => {
    const { redis } = await connected({ appendfsync: 'no file', maxmemoryPolicy: 'allkeys-lru' })
    const lossy = (await checkRedis(redis)).filter(({ state }) => state === 'lossy')
    expect(lossy.map(({ check }) => check)).toEqual(['maxmemory-policy', 'appendonly'])
  })
})
