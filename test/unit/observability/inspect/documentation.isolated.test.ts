/** docs/inspect.md: each code block is a file of docs/examples, which runs against a real relay. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it, vi } from 'vitest'
import { readBlocks } from '../../../../scripts/doc-blocks.js'
import { startRelay } from '../../../support/inspector-relay.js'
import { treeOf } from './inspected.js'

// The examples use the relay's default port; the tests start one on a free port.
const DEFAULT_URL = 'ws://localhost:8080'
let url = DEFAULT_URL

vi.mock('agent-tasks/inspect', async (load) => {
  const actual = await load<typeof import('../../../../src/observability/inspect/index.js')>()
  const createInspector: typeof actual.createInspector = (options) => {
    expect(options?.url ?? DEFAULT_URL).toBe(DEFAULT_URL)
    return actual.createInspector({ ...options, url })
  }
  return { ...actual, createInspector }
})

afterEach(() => {
  vi.restoreAllMocks()
})

const root = new URL('../../../../', import.meta.url)
const examples = new URL('docs/examples/', root)
const files = readdirSync(examples).filter((name) => name.startsWith('inspect-'))
const blocks = readBlocks('docs/inspect.md', readFileSync(new URL('docs/inspect.md', root), 'utf8'))
const withoutIndent = (text: string): string => text.replaceAll(/^ +/gm, '').trim()

it('has the examples as its code blocks, word for word', () => {
  const shown = blocks.filter(({ language }) => language === 'ts').map(({ text }) => withoutIndent(text))
  const written = files.map((name) => withoutIndent(readFileSync(new URL(name, examples), 'utf8')))
  expect(shown.sort()).toEqual(written.sort())
})

it('shows a host and its task', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  url = relay.url
  const log = vi.spyOn(console, 'log').mockImplementation(() => {})
  await import('../../../../docs/examples/inspect-host.js')
  expect(log).toHaveBeenCalledOnce()
  await received.until((message) => message.type === '@xstate.snapshot' && message.event.type === 'registry.dispose')
  expect(treeOf(received).slice(0, 2)).toEqual(['registry', 'delivery.main'])
})

it('shows a server, its lane and its task', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  url = relay.url
  vi.spyOn(console, 'error').mockImplementation(() => {})
  await import('../../../../docs/examples/inspect-server.js')
  await received.until((message) => message.type === '@xstate.snapshot' && message.event.type === 'instance.disconnect')
  expect(treeOf(received)).toEqual([
    'command-tasks',
    'instance.greeter',
    'command-tasks > lane.greeter',
    expect.stringMatching(/^command-tasks > task\./),
  ])
  expect(received.messages.map(({ type }) => type)).not.toContain('@xstate.event')
})

it('redacts with a function', async () => {
  await import('../../../../docs/examples/inspect-redact.js')
})

it('starts the relay with a command that runs in Node', () => {
  const command = blocks.find(({ text }) => text.includes('createInspectorServer'))?.text
  const program = /^ *node --input-type=module --eval "(.*)"$/.exec(command ?? '')?.[1]
  // The command as written takes port 8080, opens a browser and keeps running.
  const brief = program?.replace(
    /createInspectorServer\(\)$/,
    'createInspectorServer({ port: 0, autoOpen: false }).stop()',
  )
  expect(brief).toContain('autoOpen')
  execFileSync(process.execPath, ['--input-type=module', '--eval', brief ?? ''], { cwd: fileURLToPath(root) })
})

it('serves the page that embeds the viewer at the address that a browser opens', async () => {
  const relay = await startRelay()
  const page = await (await fetch(relay.httpUrl)).text()
  expect(page).toContain('<iframe id="inspector" src="https://stately.ai/inspect">')
})
