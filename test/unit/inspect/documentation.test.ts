/** docs/inspect.md: each of its code blocks is a file of docs/examples, and each of those runs against a real relay. */
import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, expect, it, vi } from 'vitest'
import { createInspectorServer } from '@statelyai/inspect/server'
import { startRelay } from '../../support/inspector-relay.js'
import { treeOf } from './inspected.js'

// The examples name the relay's usual port; the tests have one of their own.
const DEFAULT_URL = 'ws://localhost:8080'
let url = DEFAULT_URL

vi.mock('agent-tasks/inspect', async (load) => {
  const actual = await load<typeof import('../../../src/inspect/index.js')>()
  const createInspector: typeof actual.createInspector = (options = {}) => {
    expect(options.url ?? DEFAULT_URL).toBe(DEFAULT_URL)
    return actual.createInspector({ ...options, url })
  }
  return { ...actual, createInspector }
})

vi.mock('@statelyai/inspect/server', async (load) => {
  const actual = await load<typeof import('@statelyai/inspect/server')>()
  return { createInspectorServer: vi.fn(actual.createInspectorServer) }
})

afterEach(() => {
  vi.restoreAllMocks()
})

const examples = new URL('../../../docs/examples/', import.meta.url)
const files = readdirSync(examples).filter((name) => name.startsWith('inspect-'))
const read = (file: URL): string => readFileSync(file, 'utf8').trim()

it('has the examples as its code blocks, word for word', () => {
  const page = read(new URL('../../../docs/inspect.md', import.meta.url))
  const blocks = [...page.matchAll(/^( *)```ts\n([\s\S]*?)^ *```$/gm)].map(([, indent = '', code = '']) =>
    code
      .split('\n')
      .map((line) => line.slice(indent.length))
      .join('\n')
      .trim(),
  )
  expect(blocks.sort()).toEqual(files.map((name) => read(new URL(name, examples))).sort())
})

it('shows a host and its task', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  url = relay.url
  const log = vi.spyOn(console, 'log').mockImplementation(() => {})
  await import('../../../docs/examples/inspect-host.js')
  expect(log).toHaveBeenCalledOnce()
  await received.until((message) => message.type === '@xstate.snapshot' && message.event.type === 'registry.dispose')
  expect(treeOf(received).slice(0, 2)).toEqual(['registry', 'registry > delivery.main'])
})

it('shows a server, its lane and its task', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  url = relay.url
  vi.spyOn(console, 'error').mockImplementation(() => {})
  await import('../../../docs/examples/inspect-server.js')
  await received.until((message) => message.type === '@xstate.snapshot' && message.event.type === 'instance.disconnect')
  expect(treeOf(received)).toEqual([
    'instance.greeter',
    'lane.greeter',
    expect.stringMatching(/^lane\.greeter > task\./),
  ])
  expect(received.messages.map(({ type }) => type)).not.toContain('@xstate.event')
})

it('redacts with a function', async () => {
  await import('../../../docs/examples/inspect-redact.js')
})

it('starts the relay', async () => {
  // As it is told to it would take port 8080, and open a browser.
  vi.mocked(createInspectorServer).mockReturnValueOnce({ stop: () => {} })
  await import('../../../docs/examples/inspect-relay.js')
  expect(createInspectorServer).toHaveBeenLastCalledWith()
})

it('finds, at the address that a browser opens, the page that holds the viewer', async () => {
  const relay = await startRelay()
  const page = await (await fetch(relay.httpUrl)).text()
  expect(page).toContain('<iframe id="inspector" src="https://stately.ai/inspect">')
})
