// The instances of a cluster, as they are listed.
import { expect, it } from 'vitest'
import type { ClusterRedis, ListedInstance } from '../../../../src/bullmq/cluster/cluster-redis.js'
import { listInstances } from '../../../../src/bullmq/cluster/listed-instances.js'

const listed = (instances: readonly ListedInstance[]) =>
  listInstances({ instances: () => Promise.resolve(instances) } as unknown as ClusterRedis)
const instance = (more: Partial<ListedInstance>): ListedInstance => ({
  id: 'w',
  kind: 'websocket',
  isConnected: true,
  queued: 1,
  tools: '[{"name":"do"}]',
  ...more,
})

it('N3: have their tools while they are connected', async () => {
  const common = { id: 'w', kind: 'websocket', queued: 1 }
  expect(await listed([instance({})])).toEqual([{ ...common, isConnected: true, tools: [{ name: 'do' }] }])
  expect(await listed([instance({ isConnected: false })])).toEqual([{ ...common, isConnected: false }])
  expect(await listed([instance({ tools: undefined })])).toEqual([{ ...common, isConnected: true }])
})

it('N5: have no tools beyond 16 MiB in one answer; those that are not connected do not count', async () => {
  const large = `["${'x'.repeat(8 * 1024 * 1024 - 4)}"]`
  const found = await listed([
    ...[instance({ id: 'gone', isConnected: false, tools: large }), instance({ id: 'a', tools: large })],
    ...[instance({ id: 'b', tools: large }), instance({ id: 'c', tools: '[]' })],
  ])
  expect(found.map(({ id, tools }) => [id, tools !== undefined])).toEqual([
    ...[
      ['gone', false],
      ['a', true],
      ['b', true],
      ['c', false],
    ],
  ])
})
