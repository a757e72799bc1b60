import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { HOOK_CLIENTS } from '../../../../src/features/hooks/clients.js'
import type { ClientName } from '../../../../src/features/hooks/hook-client.js'
import { isInTranscript } from '../../../../src/features/hooks/transcript.js'

const TOKEN = 'delivery-1'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'hooks-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

function write(client: ClientName, lines: readonly object[], name = 'session.jsonl'): string {
  const folder = HOOK_CLIENTS[client].transcripts?.({ HOME: home }) ?? home
  const path = join(folder, 'project', name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return path
}

const has = (client: ClientName, path: string | undefined): boolean =>
  isInTranscript(HOOK_CLIENTS[client], path, TOKEN, { HOME: home })

const content = [{ type: 'text', text: `Delivery ID: ${TOKEN}` }]

/** Lines as the clients write them, and whether a resumed conversation has their text. */
const lines: readonly (readonly [ClientName, boolean, object])[] = [
  ['claude', true, { type: 'attachment', attachment: { type: 'hook_additional_context', content: [TOKEN] } }],
  ['claude', true, { type: 'user', message: { role: 'user', content } }],
  ['claude', false, { type: 'queue-operation', operation: 'enqueue', content: TOKEN }],
  ['claude', false, { type: 'attachment', attachment: { type: 'hook_success', stdout: TOKEN } }],
  ['claude', false, { type: 'user', isSidechain: true, message: { role: 'user', content } }],
  ['codex', true, { type: 'response_item', payload: { type: 'message', role: 'user', content } }],
  ['codex', true, { type: 'response_item', payload: { type: 'message', role: 'developer', content } }],
  ['codex', false, { type: 'event_msg', payload: { type: 'item_completed', item: { fragments: content } } }],
  ['codex', false, { type: 'response_item', payload: { type: 'function_call_output', output: TOKEN } }],
  ['gemini', true, { type: 'user', content }],
  ['gemini', false, { type: 'info', content }],
  ['qwen', true, { type: 'user', message: { role: 'user', parts: content } }],
  ['qwen', false, { type: 'system', systemPayload: { displayText: TOKEN } }],
  ['copilot', true, { type: 'user.message', data: { content: 'Hello', transformedContent: TOKEN } }],
  ['copilot', false, { type: 'hook.end', data: { output: { reason: TOKEN } } }],
]

describe('a line of a transcript', () => {
  it.each(lines)('of %s counts: %s, %o', (client, counts, line) => {
    expect(has(client, write(client, [{ type: 'other' }, line]))).toBe(counts)
  })

  it('is not one that is no JSON', () => {
    const path = write('claude', [])
    writeFileSync(path, `${TOKEN}\n{"type":"user","message":"${TOKEN}\n`)
    expect(has('claude', path)).toBe(false)
  })
})

describe('a path that is no transcript', () => {
  const line = { type: 'user', message: { content } }

  it('is one outside the folder of the client, a link, a folder, a missing file, or none', () => {
    const inside = write('claude', [line])
    const outside = join(home, 'other.jsonl')
    writeFileSync(outside, JSON.stringify(line))
    const link = join(dirname(inside), 'link.jsonl')
    symlinkSync(outside, link)
    const linkedFolder = join(dirname(inside), 'folder')
    symlinkSync(home, linkedFolder)
    expect(has('claude', inside)).toBe(true)
    const wrong = [outside, link, join(linkedFolder, 'other.jsonl'), dirname(inside), join(home, 'missing'), undefined]
    expect(wrong.map((path) => has('claude', path))).toEqual(wrong.map(() => false))
  })

  it('is any of a client without transcripts', () => {
    expect(has('opencode', write('opencode', [line]))).toBe(false)
  })
})

it('only the last 8 MiB of a transcript are read', () => {
  const path = write('claude', [
    { type: 'user', message: { content } },
    { type: 'filler', text: 'x'.repeat(9 * 1024 * 1024) },
  ])
  expect(has('claude', path)).toBe(false)
})
