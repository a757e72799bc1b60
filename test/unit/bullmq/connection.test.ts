import { on, once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { checkOptions } from '../../../src/protocol/option-checks.js'
import {
  openConnection,
  othersAreBack,
  reconnectDelay,
  redisAccessTypes,
  toRedisAddress,
  type RedisAccess,
} from '../../../src/bullmq/connection.js'

const addressOf = (connection: RedisAccess['connection'], allowNoPassword = false) =>
  toRedisAddress({ connection, allowNoPassword })

describe('where Redis is', () => {
  it('is read from a URL', () => {
    expect(addressOf('redis://localhost')).toEqual({
      options: { host: 'localhost', port: 6379 },
      name: 'localhost:6379',
    })
    expect(addressOf('rediss://me:p%40ss@redis.example:6380/2')).toEqual({
      options: { host: 'redis.example', port: 6380, username: 'me', password: 'p@ss', db: 2, tls: {} },
      name: 'redis.example:6380',
    })
    expect(addressOf('redis://[::1]:7000').options).toMatchObject({ host: '::1', port: 7000 })
  })

  it('may be options of ioredis', () => {
    expect(addressOf({ host: '127.0.0.1', port: 1 }).name).toBe('127.0.0.1:1')
    expect(addressOf({ path: '/run/redis.sock' }).name).toBe('/run/redis.sock')
    expect(addressOf({ sentinels: [{ host: 's', port: 1 }], name: 'main', password: 'x' }).name).toBe('sentinel main')
  })

  it.each([
    'localhost:6379',
    'http://localhost',
    'redis://',
    'redis://localhost/first',
    'redis://localhost?x=1',
    'redis://localhost#x',
    'redis://:s3%zz@localhost',
    'redis://:a/b@localhost',
  ])('is refused when it is no URL of Redis, without showing it: %s', (url) => {
    expect(() => addressOf(url)).toThrow(
      /^options\.connection: got "?\(not shown\)"?, expected redis:\/\/\[\[user\]:password@\]host/,
    )
  })

  it('is refused without a password on any address but loopback', () => {
    for (const connection of [
      'redis://redis.example',
      'redis://10.0.0.1:6379',
      'rediss://user@redis.example',
      { host: 'redis.example' },
      { sentinels: [{ host: 'localhost', port: 1 }] },
      // ioredis takes these for options that are not set.
      { host: 'redis.example', password: null },
      { host: 'redis.example', password: '' },
      { host: 'redis.example', path: '' },
      { host: 'redis.example', path: null },
      { host: 'redis.example', sentinels: null },
      { host: '127.0.0.1', tls: { host: 'redis.example' } },
    ] as RedisAccess['connection'][]) {
      expect(() => addressOf(connection)).toThrow(/a Redis with a password or on a loopback address/)
      expect(() => addressOf(connection, true)).not.toThrow()
    }
    for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '[::1]']) {
      expect(() => addressOf(`redis://${host}`)).not.toThrow()
    }
    expect(() => addressOf('redis://:secret@redis.example')).not.toThrow()
    for (const connection of [{}, { host: null }, { host: 'localhost', tls: {} }] as RedisAccess['connection'][]) {
      expect(addressOf(connection).name).toBe('localhost:6379')
    }
  })

  it('is refused with a prefix of keys, which BullMQ does not support', () => {
    expect(() => addressOf({ keyPrefix: 'x:' })).toThrow(/options\.connection\.keyPrefix: got "x:"/)
  })

  it('has to be given, and is not shown in the error', () => {
    const check = (options: object) => () => checkOptions(options as RedisAccess, redisAccessTypes)
    expect(check({})).toThrow(/options\.connection: got undefined/)
    expect(check({ connection: 6379 })).toThrow(/options\.connection: got "?\(not shown\)"?/)
    expect(check({ connection: 'redis://x', allowNoPassword: 'yes' })).toThrow(/options\.allowNoPassword/)
  })
})

it('W6: the wait between two attempts to connect grows to a second, and no further', () => {
  expect([1, 2, 3, 5, 6, 1000].map(reconnectDelay)).toEqual([50, 100, 200, 800, 1000, 1000])
})

/** A server that answers each command as a Redis that loads its data, and expects that to take half a minute, until it has. */
async function startLoadingRedis() {
  let isLoading = true
  const server = createServer((socket) => {
    socket.on('data', (data) => {
      for (const command of data
        .toString()
        .split(/^\*\d+\r\n/m)
        .slice(1)) {
        const info = isLoading ? 'loading:1\r\nloading_eta_seconds:30' : 'loading:0'
        socket.write(/^\$4\r\ninfo/i.test(command) ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n')
        server.emit('answered', command)
      }
    })
    socket.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const isAsked = async (): Promise<void> => {
    for await (const [command] of on(server, 'answered')) if (/info\r\n$/i.test(String(command))) return
  }
  return { port, isAsked, hasLoaded: () => void (isLoading = false) }
}

it('W6: who has found Redis loading is back before others give up what is its own', async () => {
  const server = await startLoadingRedis()
  const open = () => {
    const redis = openConnection(addressOf({ host: '127.0.0.1', port: server.port }), {
      use: 'test',
      log: () => undefined,
    })
    onTestFinished(() => redis.disconnect())
    return redis
  }
  const asked = server.isAsked()
  const early = open()
  await asked
  server.hasLoaded()
  const late = open()
  const seesDead = othersAreBack(late)
  await once(late, 'ready')
  await expect.poll(seesDead).toBe(true)
  expect(early.status).toBe('ready')
})
