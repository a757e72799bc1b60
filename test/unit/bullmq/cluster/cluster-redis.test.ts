// What a cluster sends to Redis, and how it reads the answers.
import { describe, expect, it } from 'vitest'
import { clusterKeys } from '../../../../src/bullmq/cluster/cluster-keys.js'
import { createClusterRedis, toEvents } from '../../../../src/bullmq/cluster/cluster-redis.js'
import * as scripts from '../../../../src/bullmq/cluster/cluster-scripts.js'
import { scriptedRedis } from '../../../support/scripted-redis.js'

function open(answer: unknown = 1, commands: object = {}) {
  const scripted = scriptedRedis(scripts, () => answer, commands)
  const cluster = createClusterRedis(scripted.redis, clusterKeys('c'), { maxRetained: 10 })
  return { ...scripted, cluster }
}

const own = '{c}:cluster:'
const queue = '{c}:i-w'

describe('a cluster sends', () => {
  it('N2: a submission with its limits', async () => {
    const { sent, cluster } = open(['OK', 't', 'w', 1])
    const of = { record: 'r', summary: 's', createdAt: 5, bytes: 6, key: 'k' }
    expect(await cluster.accept(undefined, of, { queue: 7, bytes: 8 })).toEqual(['OK', 't', 'w', 1])
    await cluster.accept('w', of, { queue: 7, bytes: 8 })
    expect(sent[0]).toMatchObject({ script: 'ACCEPT', values: { own, asked: '', ...of, maxQueue: 7, maxBytes: 8 } })
    expect(sent[1]?.values['asked']).toBe('w')
  })

  it('N1: a beginning, under a token and an epoch', async () => {
    const { sent, cluster } = open('run')
    expect(await cluster.begin('t', queue, 'n:1', 1, 5)).toBe('run')
    expect(sent[0]).toEqual({
      script: 'BEGIN',
      further: [],
      values: { own, id: 't', queue, token: 'n:1', epoch: 1, at: 5 },
    })
  })

  it('N3: what a task writes: how many parts there are, then fields, places of dropped reports, and events', async () => {
    const { sent, cluster } = open('ok')
    const events = [
      { seq: 3, json: '{}' },
      { seq: 4, json: '[]' },
    ]
    await cluster.record('t', queue, 'n:1', {
      fields: { a: 'b', c: 'd' },
      dropped: [1, 2],
      events,
      isEnd: true,
      bytes: 9,
    })
    await cluster.record('t', queue, 'n:1', { fields: {}, dropped: [], events: [], isEnd: false, bytes: 0 })
    expect(sent[0]).toEqual({
      script: 'RECORD',
      values: {
        own,
        id: 't',
        queue,
        token: 'n:1',
        isEnd: 1,
        logMs: 300_000,
        maxRetained: 10,
        bytes: 9,
        fieldParts: 4,
        drops: 2,
      },
      further: ['a', 'b', 'c', 'd', 1, 2, 3, '{}', 4, '[]'],
    })
    expect(sent[1]).toMatchObject({ values: { isEnd: 0, fieldParts: 0, drops: 0 }, further: [] })
  })

  it('N1, N4: the life of a node, with its instances before its runs', async () => {
    const { sent, cluster } = open(['ok'])
    await cluster.renew('n', 100, [{ id: 'w', epoch: 1 }], [{ taskId: 't', queue, token: 'n:1' }])
    expect(sent[0]).toEqual({
      script: 'RENEW',
      values: { own, node: 'n', life: 100, instances: 1 },
      further: ['w', 1, queue, 't', queue, 'n:1'],
    })
  })

  it('N1: the claim of an instance, with its fields', async () => {
    const { sent, cluster } = open([1, ''])
    expect(await cluster.claim('w', 'n', 4, true, 5, { kind: 'local' })).toEqual({ epoch: 4 })
    await cluster.claim('w', 'n', 4, false, 5, {})
    expect(sent[0]).toEqual({
      script: 'CLAIM',
      values: { own, inst: 'w', node: 'n', epoch: 4, force: 1, at: 5 },
      further: ['kind', 'local'],
    })
    expect(sent[1]?.values['force']).toBe(0)
    expect(await open([0, 'm']).cluster.claim('w', 'n', 4, true, 5, {})).toEqual({ holder: 'm' })
  })

  it('N1: the locks that it takes, and from whom', async () => {
    const { sent, cluster } = open()
    expect(await cluster.seize('w', 't', 'n:sweep', 100)).toBe(true)
    expect(await cluster.seizeFromEarlier('w', 't', 'n:2', 100, 2)).toBe(true)
    expect(sent.map(({ script, values }) => [script, values])).toEqual([
      ['SEIZE', { queue, id: 't', token: 'n:sweep', lifeMs: 100 }],
      ['SEIZE_FROM_EARLIER', { own, queue, id: 't', token: 'n:2', lifeMs: 100, inst: 'w', epoch: 2 }],
    ])
    const refused = open(0).cluster
    expect(await refused.seize('w', 't', 'n:sweep', 100)).toBe(false)
    expect(await refused.seizeFromEarlier('w', 't', 'n:2', 100, 2)).toBe(false)
  })

  it('N5: what ends, is asked to end, or is given up, and whether it was', async () => {
    const { sent, cluster } = open()
    expect(await cluster.endQueued('t', '{}', { status: 'failed' })).toBe(true)
    expect([await cluster.confirm('t'), await cluster.abandon('t'), await cluster.askCancel('t', 'why')]).toEqual([
      ...[true, true, true],
    ])
    expect(sent).toEqual([
      {
        script: 'END_QUEUED',
        values: { own, id: 't', logMs: 300_000, maxRetained: 10, message: '{}' },
        further: ['status', 'failed'],
      },
      { script: 'CONFIRM', values: { own, task: 't' }, further: [] },
      { script: 'ABANDON', values: { own, task: 't', leastAgeMs: 0 }, further: [] },
      { script: 'ASK_CANCEL', values: { own, task: 't', reason: 'why' }, further: [] },
    ])
    const { cluster: refused } = open(0)
    expect([
      ...[await refused.endQueued('t', '{}', {}), await refused.confirm('t')],
      ...[await refused.abandon('t', 9), await refused.askCancel('t', '')],
    ]).toEqual([false, false, false, false])
  })
})

describe('a cluster reads', () => {
  it('N4: what nobody looks after', async () => {
    const { sent, cluster } = open(['stalled', 'w', 'job', 'awaited', 'v', 'a b', 'joining', '', 'c'])
    expect(await cluster.survey(1, 2, 3)).toEqual([
      { kind: 'stalled', instanceId: 'w', ids: ['job'] },
      { kind: 'awaited', instanceId: 'v', ids: ['a', 'b'] },
      { kind: 'joining', instanceId: '', ids: ['c'] },
    ])
    expect(sent[0]?.values).toEqual({ own, prefix: '{c}', graceMs: 1, joinMs: 2, retentionMs: 3, againMs: 0 })
  })

  it('N3: events with their places', () => {
    expect(
      toEvents([
        ['7-0', ['m', '{}']],
        ['12-0', []],
      ]),
    ).toEqual([
      { seq: 7, json: '{}' },
      { seq: 12, json: '' },
    ])
  })

  it('N3: a page of tasks from a place downwards', async () => {
    const asked: unknown[][] = []
    const pipeline = () => {
      const reads = {
        hmget: () => reads,
        exec: () =>
          Promise.resolve([
            [null, ['{"name":"n"}', 'queued', 'w', '0', '5']],
            [null, []],
          ]),
      }
      return reads
    }
    const zrevrangebyscore = (...args: unknown[]) => {
      asked.push(args)
      return Promise.resolve(['t2', '2', 't1', '1'])
    }
    const { cluster } = open(1, { pipeline, zrevrangebyscore })
    const page = await cluster.page('w', 3, 2)
    expect(page).toMatchObject([
      { place: 2, summary: { id: 't2', name: 'n', createdAt: 5 } },
      { place: 1, summary: undefined },
    ])
    await cluster.page(undefined, Infinity, 2)
    expect(asked.map(([set, most]) => [set, most])).toEqual([
      [`${own}of:w`, '(3'],
      [`${own}tasks`, '+inf'],
    ])
  })

  it('N5: limits and settings that the first or the last node has stored', async () => {
    const stored = new Map<string, string>()
    const commands = {
      set: (key: string, value: string, mode?: string) => {
        if (mode !== 'NX' || !stored.has(key)) stored.set(key, value)
        return Promise.resolve('OK')
      },
      get: (key: string) => Promise.resolve(stored.get(key) ?? null),
    }
    const { cluster } = open(1, commands)
    expect(await cluster.limits()).toBeUndefined()
    const limits = { maxQueueSize: 1, maxTaskBytes: 2, maxBytes: 3, maxRetained: 4 }
    await cluster.setLimits({ ...limits, other: 5 } as typeof limits)
    expect(await cluster.limits()).toEqual(limits)
    expect([await cluster.shared('seal', 'first'), await cluster.shared('seal', 'second')]).toEqual(['first', 'first'])
  })
})
