/** Small parts of the extension. */
import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { createManifest } from '../../../../src/client/extension/manifest.js'
import { refusalOf } from '../../../../src/client/extension/page-access.js'
import { recall, type SessionArea } from '../../../../src/client/extension/remembered.js'
import { countRunning } from '../../../../src/client/extension/working-tools.js'
import { EXTENSION_KEY, EXTENSION_ORIGIN } from '../../../../src/protocol/browser-extension.js'
import type { InstanceToolContext } from '../../../../src/protocol/instance-tools.js'

it('has the origin that its key makes', () => {
  const digest = createHash('sha256').update(Buffer.from(EXTENSION_KEY, 'base64')).digest('hex').slice(0, 32)
  const id = digest.replace(/./g, (digit) => String.fromCharCode('a'.charCodeAt(0) + parseInt(digit, 16)))
  expect(EXTENSION_ORIGIN).toBe(`chrome-extension://${id}`)
})

it('E4: asks for four permissions, and lets no page or extension reach it', () => {
  const manifest = createManifest('1.2.3-beta.4')
  expect([manifest.version, manifest.version_name]).toEqual(['1.2.3', '1.2.3-beta.4'])
  expect(createManifest('next').version).toBe('0')
  expect(manifest.permissions).toEqual(['debugger', 'tabGroups', 'storage', 'alarms'])
  expect(Object.keys(manifest)).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/externally_connectable|web_accessible|content_scripts|optional/)]),
  )
  expect(manifest.content_security_policy.extension_pages).toMatch(/^default-src 'none'; script-src 'self';/)
})

it.each(['https://example.org/', 'http://127.0.0.1:1', 'data:text/html,x', 'blob:https://x/1', 'about:blank', ''])(
  'allows %s',
  (url) => expect(refusalOf(url)).toBeUndefined(),
)

it.each([
  ['chrome://settings/', 'chrome:'],
  ['chrome-extension://abc/options.html', 'chrome-extension:'],
  ['devtools://devtools/x', 'devtools:'],
  ['file:///etc/passwd', 'file:'],
  ['view-source:https://example.org', 'view-source:'],
  ['javascript:alert(1)', 'javascript:'],
  ['about:blank#x', 'about:'],
  ['about:blank?x', 'about:'],
  ['about:srcdoc#x', 'about:'],
  ['about:settings', 'about:'],
  ['https://chromewebstore.google.com/detail/x', 'Chrome Web Store'],
  ['https://chrome.google.com/webstore/category', 'Chrome Web Store'],
  ['https://ann@chromewebstore.google.com./detail/x', 'Chrome Web Store'],
  ['blob:chrome-extension://abc/1', 'blob:'],
])('E1: refuses %s in words', (url, named) => {
  expect(refusalOf(url)).toMatchObject({ code: 'PAGE_NOT_ALLOWED', message: expect.stringContaining(named) as string })
})

function sessionArea(stored: unknown) {
  const items: Record<string, unknown> = { remembered: stored }
  const area: SessionArea = {
    get: async (key) => ({ [key]: items[key] }),
    set: async (changed) => void Object.assign(items, changed),
  }
  return { area, items }
}

it('remembers what the earlier life of the service worker has stored', async () => {
  const { area, items } = sessionArea(undefined)
  const first = await recall(area)
  await first.change({ groups: [7], current: 3 })
  await first.change({ isWorking: true, lastRef: 12, current: undefined })
  const next = await recall(area)
  expect(next.facts).toEqual({ groups: [7], given: [], attached: [], lastRef: 12, isWorking: true })
  expect(first.facts).toEqual(items['remembered'])
})

it('starts with nothing where it cannot read what was stored', async () => {
  const { area } = sessionArea({ groups: 'all' })
  expect((await recall(area)).facts).toEqual({ groups: [], given: [], attached: [], lastRef: 0, isWorking: false })
})

function contextOf(signal: AbortSignal = new AbortController().signal): InstanceToolContext {
  return { signal, progress: () => undefined }
}

it('counts the calls that run, whatever ends them', async () => {
  const counts: number[] = []
  const [fine, broken] = countRunning(
    [
      { name: 'fine', execute: (input) => input },
      { name: 'broken', execute: () => Promise.reject(new Error('broken')) },
    ],
    async (running) => void counts.push(running),
  )
  const both = [fine?.execute('x', contextOf()), broken?.execute('x', contextOf())]
  expect(await Promise.allSettled(both)).toMatchObject([{ value: 'x' }, { reason: { message: 'broken' } }])
  expect(counts).toEqual([1, 2, 1, 0])
})

it('does not start a call that was cancelled while it was counted', async () => {
  let hasRun = false
  const aborted = new AbortController()
  const [tool] = countRunning([{ name: 'late', execute: () => (hasRun = true) }], async () => aborted.abort())
  await expect(tool?.execute('x', contextOf(aborted.signal))).rejects.toThrow('aborted')
  expect(hasRun).toBe(false)
})

it('E3: says that a call was interrupted when the browser ends the service worker before its socket', async () => {
  const [tool] = countRunning([{ name: 'dying', execute: () => Promise.reject(new Error('No SW')) }], async () => {})
  await expect(tool?.execute('x', contextOf())).rejects.toMatchObject({ code: 'INTERRUPTED' })
})

it('answers what a tool has done, also when that could not be noted any more', async () => {
  const note = (running: number): Promise<void> =>
    running === 0 ? Promise.reject(new Error('No SW')) : Promise.resolve()
  const [tool] = countRunning([{ name: 'fine', execute: () => 'done' }], note)
  expect(await tool?.execute('x', contextOf())).toBe('done')
})
