// The list of instances is there for everybody, whatever one of them says of its tools, or does not say.
import { expect, it } from 'vitest'
import { localInstance, type Instance } from '../../../src/server/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { until } from '../../support/lifelines.js'
import { openSocket } from '../../support/socket-client.js'
import { startTestServer } from './test-server.js'

/** An instance that lists its tools as the test says. */
function listing(id: string, listTools: Instance['listTools']): Instance {
  return { ...localInstance({ id, tools: [] }), listTools }
}

const nest = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

it('lists all instances when one never answers, which is asked once however many clients ask', async () => {
  const clock = createManualClock(1_000_000)
  let questions = 0
  const silent = listing('silent', () => {
    questions += 1
    return new Promise(() => undefined)
  })
  const server = await startTestServer({
    clock,
    instances: [silent, listing('other', () => Promise.resolve([{ name: 'look' }]))],
  })
  const answers = [server.call('/instances'), server.call('/instances')]
  const isAnswered = Promise.all(answers).then(() => true)
  const state = { isAnswered: false }
  void isAnswered.then(() => (state.isAnswered = true))
  await until(() => {
    clock.advance(100)
    return state.isAnswered
  })
  for (const { body } of await Promise.all(answers)) {
    const common = { kind: 'local', isConnected: true, queued: 0, connectedAt: 1_000_000, lastActivity: 1_000_000 }
    expect(body['instances']).toEqual([
      { ...common, id: 'silent' },
      { ...common, id: 'other', tools: [{ name: 'look' }] },
    ])
  }
  expect(questions).toBe(1)
})

it('lists all instances when one of the host throws instead of listing its tools', async () => {
  const throwing = listing('throwing', () => {
    throw new Error('no')
  })
  const server = await startTestServer({
    instances: [throwing, listing('other', () => Promise.resolve([{ name: 'look' }]))],
  })
  const [instances, tools] = [await server.call('/instances'), await server.call('/api/tools')]
  expect([instances.status, tools.status]).toEqual([200, 200])
  expect(instances.body['instances']).toMatchObject([{ id: 'throwing' }, { id: 'other', tools: [{ name: 'look' }] }])
})

it('lists tools whose schema is nested too deep to be written, and leaves out those that are too large', async () => {
  const deep = JSON.parse(nest(100_000)) as Record<string, unknown>
  const server = await startTestServer({
    instances: [
      listing('deep', () => Promise.resolve([{ name: 'look', inputSchema: deep }])),
      listing('large', () => Promise.resolve([{ name: 'look', description: 'x'.repeat(20 * 1024 * 1024) }])),
      listing('fails', () => Promise.reject(new Error('no'))),
      listing('good', () => Promise.resolve([{ name: 'look' }])),
    ],
  })
  const { status, body } = await server.call('/instances')
  const tools = (body['instances'] as { tools?: unknown[] }[]).map((instance) => instance.tools?.length)
  expect([status, tools]).toEqual([200, [1, undefined, undefined, 1]])
})

it('refuses tools of a worker that are nested too deep or too large, in its hello and in its registration', async () => {
  const server = await startTestServer()
  const { body } = await server.post('/register', { instanceId: 'remote' })
  const worker = await openSocket(String(body['websocketUrl']))
  const hello = (tools: string): string =>
    `{"type":"hello","instanceId":"remote","secret":"${String(body['secret'])}","tools":[${tools}]}`
  worker.send(hello(`{"name":"look","inputSchema":${nest(100_000)}}`))
  expect(await worker.next()).toMatchObject({ type: 'error', code: 'TOO_DEEP' })
  const large = JSON.stringify({ name: 'look', inputSchema: { description: 'x'.repeat(300 * 1024) } })
  worker.send(hello(large))
  expect(await worker.next()).toMatchObject({ type: 'error', code: 'INVALID_MESSAGE' })
  expect(await server.post('/register', `{"tools":[${large}]}`)).toMatchObject({
    status: 400,
    body: { code: 'INVALID_REQUEST', details: { field: 'body.tools', expected: 'at most 262144 bytes of JSON' } },
  })
  worker.send(hello('{"name":"look"}'))
  expect(await worker.next()).toMatchObject({ type: 'welcome' })
  expect((await server.call('/instances')).body['instances']).toMatchObject([{ id: 'calc' }, { id: 'remote' }])
})

it('asks an instance anew for each list, and leaves out what does not fit behind the tools of others', async () => {
  let size = 10
  const listTools = () => Promise.resolve([{ name: 'look', description: 'x'.repeat(size) }])
  const server = await startTestServer({ instances: [listing('growing', listTools), listing('other', listTools)] })
  const read = async () => {
    const { body } = await server.call('/instances')
    return (body['instances'] as { tools?: { description: string }[] }[]).map(
      ({ tools }) => tools?.[0]?.description.length,
    )
  }
  expect(await read()).toEqual([10, 10])
  // Each of them alone would fit.
  size = 9 * 1024 * 1024
  expect(await read()).toEqual([size, undefined])
})
