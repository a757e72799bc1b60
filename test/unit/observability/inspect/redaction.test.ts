/** What is sent, and what is redacted. */
import { expect, it } from 'vitest'
import { createAgentTasks } from '../../../../src/host/agent-tasks.js'
import { AsyncTaskManager } from '../../../../src/async-tasks/manager.js'
import { redactByDefault } from '../../../../src/observability/inspect/index.js'
import { startRelay } from '../../../support/inspector-relay.js'
import { startTestServer, taskOf } from '../../server/test-server.js'
import { flushTo, inspectorFor } from './inspected.js'
import type { InspectorOptions } from '../../../../src/observability/inspect/inspector-types.js'

const SECRET = 'XYZZY'

/** A run in which every text of a person, a model or a program has the secret; returns the messages as text. */
async function runWithSecrets(options: InspectorOptions = {}): Promise<string[]> {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector, onError } = inspectorFor(relay.url, options)
  const agent = createAgentTasks({
    inspect: inspector,
    notifyCancelled: true,
    isAgentBusy: () => false,
    triggerAgentTurn: (text) => expect(text).toContain(SECRET),
  })
  const manager = agent.getAsyncTaskManager()
  const goalPrompt = `the prompt ${SECRET}`
  manager.launch({ id: 'done', subagentName: 's', goalPrompt }, (_input, context) => {
    context.append(`printed ${SECRET}`)
    context.report({ progress: 1, message: `progress ${SECRET}` })
    return { final_message: `output ${SECRET}`, emitted_vars: { token: SECRET, deep: [{ also: SECRET }] } }
  })
  manager.launch({ id: 'failed', subagentName: 's', goalPrompt }, () => {
    throw new Error(`error ${SECRET}`)
  })
  await manager.onIdle()
  const restored = AsyncTaskManager.restore(
    manager.getAllTasks().map((record) => ({ ...record, delivery: 'owed' as const })),
    { inspect: inspector },
  )
  // A late acknowledgement: its event holds the entries.
  const lease = restored.lease()
  lease?.release()
  lease?.acknowledge()
  expect(restored.getTask('done')?.delivery).toBe('delivered')
  await restored.dispose()
  await agent.dispose()
  const server = await startTestServer({ inspect: inspector, auth: { tokens: [SECRET.repeat(8)] } })
  const headers = { authorization: `Bearer ${SECRET.repeat(8)}` }
  const commands = ['echo', 'blow'].map((tool_name) => ({ tool_name, args: { prompt: SECRET, token: SECRET } }))
  const task = { ...taskOf(...commands), task_name: SECRET, task_intention: SECRET, metadata: { user: SECRET } }
  expect((await server.post('/tasks', task, headers)).status).toBe(201)
  await server.close({ drainMs: 1000 })
  await flushTo(inspector, received)
  expect(onError).not.toHaveBeenCalled()
  expect(received.messages.length).toBeGreaterThan(60)
  return received.messages.map((message) => JSON.stringify(message))
}

it('sends no prompt, output, error message or token by default', async () => {
  const sent = await runWithSecrets()
  expect(sent.filter((text) => text.includes(SECRET))).toEqual([])
  // The rest is shown.
  expect(sent.join()).toContain('"subagentName":"s"')
  expect(sent.join()).toContain('[redacted]')
})

it('sends everything with redact: false', async () => {
  const sent = (await runWithSecrets({ redact: false })).join('\n')
  const texts = ['the prompt', 'output', 'error'].map((text) => `${text} ${SECRET}`)
  expect(texts.filter((text) => !sent.includes(text))).toEqual([])
})

it('calls a function with each field; redactByDefault can be used in it', async () => {
  const sent = await runWithSecrets({
    redact: (key, value) =>
      key === 'goalPrompt' ? String(value).replace(SECRET, 'hidden') : redactByDefault(key, value),
  })
  expect(sent.filter((text) => text.includes(SECRET))).toEqual([])
  expect(sent.join()).toContain('the prompt hidden')
})

it.each([
  ['goalPrompt', 'x', '[redacted]'],
  ['GOALPROMPT', 'x', '[redacted]'],
  ['output', { a: 1 }, '[redacted]'],
  ['lateOutput', { a: 1 }, '[redacted]'],
  ['authToken', 'x', '[redacted]'],
  ['API_KEY', 'x', '[redacted]'],
  ['apiKey', 'x', '[redacted]'],
  ['Authorization', 'x', '[redacted]'],
  ['password', 7, '[redacted]'],
  ['error', 'the words', '[redacted]'],
  ['schema', { title: 'what a question asks' }, '[redacted]'],
  ['error', { code: 'CANCELLED' }, { code: 'CANCELLED' }],
  ['output', undefined, undefined],
  ['subagentName', 'x', 'x'],
  ['status', 'failed', 'failed'],
])('by default, %s: %j is shown as %j', (key, value, shown) => {
  expect(redactByDefault(key, value)).toEqual(shown)
})

/** Text fields of machines and records that were reviewed and are not content. */
const REVIEWED = new Set([
  ...['type', 'id', 'actorId', 'taskId', 'instanceId', 'subagentName', 'owner', 'status', 'delivery', 'value', 'code'],
  ...[
    'deliveryId',
    'deliveredBy',
    'taskIds',
    'heir',
    'reservationId',
    'name',
    'tags',
    'kind',
    'from',
    'to',
    'task',
    'src',
  ],
  ...['initial', 'active', 'running', 'holding', 'gathering', 'delivering', 'connecting', 'connected', 'connection'],
  ...['phase', 'pruning'],
])

it('shows text only in reviewed fields', async () => {
  const fields = new Set<string>()
  const look = (key: string, value: unknown): void => {
    if (typeof value === 'string' && value !== '[redacted]') fields.add(key)
    if (Array.isArray(value)) for (const element of value) look(key, element)
    else if (typeof value === 'object' && value !== null) {
      for (const [name, inner] of Object.entries(value)) look(name, inner)
    }
  }
  for (const text of await runWithSecrets()) {
    const { event, snapshot } = JSON.parse(text) as { event?: unknown; snapshot?: unknown }
    look('event', event)
    look('snapshot', snapshot)
  }
  expect([...fields].filter((field) => !REVIEWED.has(field))).toEqual([])
})
