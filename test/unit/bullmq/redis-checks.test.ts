import { describe, expect, it } from 'vitest'
import type { Redis } from 'ioredis'
import { checkRedis, judgeRedis, reportFindings } from '../../../src/bullmq/redis-checks.js'

interface Settings {
  readonly version?: string
  readonly valkey?: string
  readonly policy?: string
  readonly aof?: string
  readonly role?: string
  readonly mode?: string
}

/** What a Redis says, with the line ends of Redis. */
const infoOf = ({ version = '7.0.15', valkey, policy = 'noeviction', aof = '1', ...more }: Settings = {}): string =>
  [
    '# Server',
    `redis_version:${version}`,
    ...(valkey === undefined ? [] : [`valkey_version:${valkey}`]),
    ...(policy === '' ? [] : [`maxmemory_policy:${policy}`]),
    ...(aof === '' ? [] : [`aof_enabled:${aof}`]),
    `redis_mode:${more.mode ?? 'standalone'}`,
    `role:${more.role ?? 'master'}`,
    ...(more.role === 'slave' ? ['master_host:10.0.0.7', 'master_port:6379'] : []),
    '',
  ].join('\r\n')

const judge = (settings: Settings, fsync = 'always') =>
  Object.fromEntries(judgeRedis(infoOf(settings), fsync).map(({ check, state, detail }) => [check, { state, detail }]))

describe('what a Redis says about itself', () => {
  it('is good when it keeps what it accepts', () => {
    expect(judgeRedis(infoOf(), 'always')).toEqual([
      { check: 'version', state: 'ok', detail: 'Redis 7.0.15' },
      { check: 'maxmemory-policy', state: 'ok', detail: 'noeviction' },
      { check: 'appendonly', state: 'ok', detail: 'yes' },
      { check: 'appendfsync', state: 'ok', detail: 'always' },
    ])
  })

  it('refuses a replica, and a node of a Redis Cluster', () => {
    expect(judge({ role: 'slave' })['role']).toEqual({
      state: 'unusable',
      detail: 'This Redis is a replica of 10.0.0.7:6379, and a replica accepts no tasks. Connect to its primary.',
    })
    expect(judge({ mode: 'cluster' })['mode']).toMatchObject({ state: 'unusable' })
    expect(judge({ mode: 'sentinel' })['mode']).toBeUndefined()
  })

  it('names what everysec loses, and when', () => {
    expect(judge({}, 'everysec')['appendfsync']).toEqual({
      state: 'note',
      detail:
        'everysec: the writes of up to two seconds are lost when the machine fails, or when Redis is killed while its disk is busy.',
    })
  })

  it('says what is lost without each setting', () => {
    expect(judge({ policy: 'allkeys-lru' })['maxmemory-policy']).toMatchObject({
      state: 'lossy',
      detail: expect.stringContaining('it deletes tasks that it has accepted') as string,
    })
    expect(judge({ aof: '0' })['appendonly']).toMatchObject({
      state: 'lossy',
      detail: expect.stringContaining('it loses all tasks since its last snapshot') as string,
    })
    expect(judge({}, 'no')['appendfsync']).toMatchObject({ state: 'lossy' })
  })

  it('refuses what is too old, and knows Valkey', () => {
    expect(judge({ version: '6.0.16' })['version']).toMatchObject({ state: 'unusable' })
    expect(judge({ version: '5.9.9' })['version']).toMatchObject({ state: 'unusable' })
    expect(judge({ version: '6.2.0' })['version']).toMatchObject({ state: 'ok' })
    expect(judge({ version: '7.2.4', valkey: '8.1.1' })['version']).toEqual({ state: 'ok', detail: 'Valkey 8.1.1' })
    expect(judge({ version: '' })['version']).toMatchObject({ state: 'unusable' })
  })

  it('only notes what a hosted Redis hides', () => {
    const findings = judge({ policy: '', aof: '' }, '')
    expect(findings['maxmemory-policy']?.state).toBe('note')
    expect(findings['appendonly']?.state).toBe('note')
    expect(findings['appendfsync']).toBeUndefined()
    expect(judge({}, '')['appendfsync']).toBeUndefined()
  })
})

it('what may be lost is logged once in a process, for each Redis', async () => {
  const redis = {
    info: () => Promise.resolve(infoOf({ aof: '0' })),
    config: () => Promise.resolve([]),
  } as unknown as Redis
  const lines: string[] = []
  for (const name of ['one:1', 'one:1', 'two:2']) await reportFindings(redis, { name, log: (line) => lines.push(line) })
  expect(lines.map((line) => line.split(',')[0])).toEqual(['Redis at one:1', 'Redis at two:2'])
})

describe('the check of a Redis', () => {
  const redisThat = (answers: { info: () => Promise<string>; config?: () => Promise<unknown> }): Redis =>
    ({ config: () => Promise.resolve(['appendfsync', 'always']), ...answers }) as unknown as Redis

  it('reads the sync of its log', async () => {
    const findings = await checkRedis(redisThat({ info: () => Promise.resolve(infoOf()) }))
    expect(findings).toEqual(judgeRedis(infoOf(), 'always'))
  })

  it('judges without the sync where a hosted Redis refuses CONFIG', async () => {
    const config = () => Promise.reject(new Error('ERR unknown command'))
    const findings = await checkRedis(redisThat({ info: () => Promise.resolve(infoOf()), config }))
    expect(findings).toEqual(judgeRedis(infoOf(), ''))
  })

  it.each(['NOAUTH Authentication required.', 'WRONGPASS invalid', 'NOPERM this user has no permissions'])(
    'says that the connection is refused: %s',
    async (text) => {
      const info = () => Promise.reject(new Error(text))
      expect(await checkRedis(redisThat({ info }))).toEqual([
        { check: 'access', state: 'unusable', detail: expect.stringContaining(text) as string },
      ])
    },
  )

  it('rejects when Redis does not answer', async () => {
    const info = () => Promise.reject(new Error('Connection is closed.'))
    await expect(checkRedis(redisThat({ info }))).rejects.toThrow('Connection is closed.')
  })
})
