/**
 * The chat servers of docs/examples/chat are killed at random moments while three users chat with them and reconnect. `CHAT_KILLS=200` kills them more
 * often, and `CHAT_SEED=7` chooses other moments.
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import {
  overEvents,
  overPolling,
  overWebSocket,
  PacedClient,
  type Connect,
  type SentMessage,
} from '../support/chat/clients.js'
import { judge, judgeSeen, openIn, turnsIn, type Verdict } from '../support/chat/judge.js'
import { Lives, randomOf, type HostArguments } from '../support/chat/life.js'
import { KINDS, tokenOf, USERS } from '../support/chat/script.js'

const { CHAT_KILLS, CHAT_SEED = '1' } = process.env
const seed = Number(CHAT_SEED)
/** How many kills a control begins with, and when it must have found its fault. */
const CONTROL_KILLS = { first: 10, most: 80 } as const
/** Only what hangs is to fail. */
const timeoutOf = (kills: number): number => 120_000 + kills * 20_000
const root = fileURLToPath(new URL('../../', import.meta.url))

beforeAll(() => {
  execFileSync('npm', ['run', '--silent', 'built'], { cwd: root, stdio: 'inherit' })
}, 300_000)

const connects: Record<'ws' | 'hono' | 'next', Connect> = { ws: overWebSocket, hono: overEvents, next: overPolling }

const faultless = { lost: [], repeated: [], marked: [], leaked: [] }

function report(what: string, kills: number, { lost, repeated, marked, leaked, ...counts }: Verdict): void {
  const found = { lost: lost.length, repeated: repeated.length, marked: marked.length, leaked: leaked.length }
  console.log(`${what}: ${JSON.stringify({ seed, kills, ...counts, ...found })}`)
}

/** Three users chat with a server that is killed. Then they stop, and the last server ends what is left. */
async function chat(kind: 'ws' | 'hono' | 'next', kills: number, fault?: HostArguments['fault']) {
  const random = randomOf(seed)
  const lives = new Lives(fault === undefined ? { kind } : { kind, fault }, random)
  await lives.start()
  const clients = USERS.map((user, n) => new PacedClient(user, connects[kind], lives.url, randomOf(seed * 10 + n)))
  const talks = clients.map((client) => client.run())
  onTestFinished(async () => {
    for (const client of clients) client.end()
    await Promise.all(talks)
  })
  const seen = (): number => clients.reduce((sum, { turns }) => sum + turns.length, 0)
  while (lives.kills < kills) await lives.killAndStart(seen)
  for (const client of clients) client.isWriting = false
  await expect.poll(() => clients.map(({ unanswered }) => unanswered), { timeout: 60_000 }).toEqual([0, 0, 0])
  await lives.idle()
  const isOwnFile = fault === 'own file'
  const lastOf = (user: string): number =>
    Math.max(0, ...turnsIn(lives.folder, isOwnFile).flatMap(({ owner, seq }) => (owner === user ? [seq] : [])))
  if (!isOwnFile) await expect.poll(() => clients.map(({ lastSeq }) => lastSeq)).toEqual(USERS.map(lastOf))
  for (const client of clients) client.end()
  await Promise.all(talks)
  await lives.end()
  const verdict = judge(lives.folder, new Map(clients.map(({ user, sent }) => [user, sent])), isOwnFile)
  report(fault === undefined ? kind : `${kind} with the fault '${fault}'`, lives.kills, verdict)
  return { lives, clients, verdict }
}

describe('a chat server that is killed', () => {
  it.each([
    { kind: 'ws', kills: Number(CHAT_KILLS ?? 6) },
    { kind: 'hono', kills: Number(CHAT_KILLS ?? 6) },
    { kind: 'next', kills: 5 },
  ] as const)(
    '$kind loses and repeats nothing',
    { timeout: timeoutOf(Number(CHAT_KILLS ?? 6)) },
    async ({ kind, kills }) => {
      const { lives, clients, verdict } = await chat(kind, kills)
      expect(verdict).toMatchObject({ ...faultless, relaunched: 0 })
      // A slow machine has few between two kills.
      expect(verdict.messages).toBeGreaterThan(kills / 4)
      expect(verdict.tasks).toBeGreaterThan(kills / 4)
      expect(openIn(lives.folder)).toEqual([])
      const kept = turnsIn(lives.folder)
      expect(clients.flatMap((client) => judgeSeen(client, kept))).toEqual([])
    },
  )

  it.each([
    { kind: 'ws', fault: 'own file', finds: 'repeated' },
    { kind: 'hono', fault: 'early answer', finds: 'lost' },
  ] as const)(
    'control: with the fault $fault, $kind is found',
    { timeout: timeoutOf(2 * CONTROL_KILLS.most) },
    async ({ kind, fault, finds }) => {
      let found = 0
      for (let kills: number = CONTROL_KILLS.first; found === 0; kills *= 2) {
        expect(kills).toBeLessThanOrEqual(CONTROL_KILLS.most)
        const { verdict } = await chat(kind, kills, fault)
        found = verdict[finds].length
      }
    },
  )
})

/** A chat service with a bot. */
async function startService() {
  const updates: { id: number; room: string; text: string }[] = []
  const posts = new Map<string, { room: string; text: string }>()
  let repeats = 0
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://127.0.0.1')
    if (pathname === '/updates') {
      const after = Number(searchParams.get('after'))
      response.end(JSON.stringify(updates.filter(({ id }) => id > after).slice(0, 20)))
      return
    }
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += String(chunk)
    const { key, ...post } = JSON.parse(body) as { key: string; room: string; text: string }
    if (posts.has(key)) repeats += 1
    else posts.set(key, post)
    response.end('{}')
  }
  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { api, updates, posts, repeats: () => repeats }
}

it('a bot that is killed posts each turn once, and in its order', { timeout: timeoutOf(10) }, async () => {
  const { api, updates, posts } = await startService()
  const random = randomOf(seed)
  const lives = new Lives({ kind: 'bot', api }, random)
  await lives.start()
  const sent = new Map<string, SentMessage[]>(USERS.map((user) => [user, []]))
  const write = (): void => {
    // What is not answered yet is bounded, because a machine may be slow.
    if (updates.length >= posts.size + 15) return
    const room = USERS[Math.floor(random() * USERS.length)] ?? 'ann'
    const id = updates.length + 1
    const text = `@${room} m${id} ${KINDS[Math.floor(random() * KINDS.length)] ?? 'plain'}`
    updates.push({ id, room, text })
    sent.get(room)?.push({ id: String(id), text })
  }
  const writing = setInterval(write, 120)
  onTestFinished(() => clearInterval(writing))
  while (lives.kills < 10) await lives.killAndStart(() => posts.size)
  clearInterval(writing)
  updates.push({ id: updates.length + 1, room: 'ann', text: 'x'.repeat(5000) })
  const keyOf = ({ owner, seq }: { owner: string; seq: number }): string => `${owner} ${seq}`
  const answered = (): (string | undefined)[] =>
    turnsIn(lives.folder).map(({ owner, inputId }) => inputId && `${owner} ${inputId}`)
  await expect
    .poll(() =>
      [...sent].flatMap(([user, messages]) => messages.filter(({ id }) => !answered().includes(`${user} ${id}`))),
    )
    .toEqual([])
  await lives.idle()
  const due = turnsIn(lives.folder)
  await expect.poll(() => posts.size).toBe(due.length + 1)
  await lives.end()
  const verdict = judge(lives.folder, sent)
  report('bot', lives.kills, verdict)
  expect(verdict).toMatchObject({ ...faultless, relaunched: 0 })
  expect(openIn(lives.folder)).toEqual([])
  for (const user of USERS) {
    const mine = due.filter(({ owner }) => owner === user).map(keyOf)
    expect([...posts.keys()].filter((key) => key.startsWith(`${user} `))).toEqual(mine)
  }
  expect(posts.get(`refused ${updates.length}`)).toEqual({
    room: 'ann',
    text: expect.stringMatching(/^text: /) as string,
  })
})

describe('what is wrong gets an error that names it', () => {
  const auth = { authorization: `Bearer ${tokenOf('ann')}` }
  const wrong = [
    ['{', 400, /^message: expected JSON/],
    ['[]', 400, /^message: /],
    ['{"text":"hello"}', 400, /^id: /],
    ['{"id":"","text":"hello"}', 400, /^id: /],
    ['{"id":"m1"}', 400, /^text: /],
    [JSON.stringify({ id: 'm1', text: 'x'.repeat(4001) }), 400, /^text: /],
    ['{"id":"m1","text":"hello","user":"bob"}', 400, /^message: .*"user"/],
    ['{"id":"used","text":"other"}', 409, /^id: /],
  ] as const

  async function startServer(kind: 'ws' | 'hono' | 'next'): Promise<string> {
    const lives = new Lives({ kind }, randomOf(seed))
    await lives.start()
    return lives.url() ?? ''
  }

  it.each([
    { kind: 'hono', path: '/messages', read: '/turns' },
    { kind: 'next', path: '/', read: '/' },
  ] as const)('$kind', async ({ kind, path, read }) => {
    const url = await startServer(kind)
    const ask = async (at: string, init: RequestInit): Promise<unknown[]> => {
      const response = await fetch(`${url}${at}`, { headers: auth, ...init })
      const { error } = (await response.json()) as { error?: string }
      return [response.status, error]
    }
    const post = (body: string) => ask(path, { method: 'POST', body })
    expect(await post('{"id":"used","text":"hello"}')).toEqual([200, undefined])
    for (const [body, status, error] of wrong) expect(await post(body)).toEqual([status, expect.stringMatching(error)])
    expect(await post('x'.repeat(20_000))).toEqual([413, expect.stringMatching(/^message: /)])
    const unknown = { headers: { authorization: 'Bearer guessed' } }
    expect(await ask(read, unknown)).toEqual([401, expect.stringMatching(/^authorization: /)])
    expect(await ask(`${read}?after=-1`, {})).toEqual([400, expect.stringMatching(/^after: /)])
    expect(await ask(`${read}?after=x`, {})).toEqual([400, expect.stringMatching(/^after: /)])
    if (kind === 'hono') expect(await ask('/other', {})).toEqual([404, expect.stringMatching(/^path: /)])
  })

  it('hono: a user has a limit of streams, which counts no stream that was closed', async () => {
    const url = await startServer('hono')
    const open = async () => {
      const closing = new AbortController()
      const response = await fetch(`${url}/turns`, { headers: auth, signal: closing.signal })
      return { status: response.status, close: () => closing.abort() }
    }
    for (let n = 0; n < 5; n += 1) expect((await open()).status).toBe(200)
    expect((await open()).status).toBe(429)
    const bob = { authorization: `Bearer ${tokenOf('bob')}` }
    const other = new AbortController()
    expect((await fetch(`${url}/turns`, { headers: bob, signal: other.signal })).status).toBe(200)
    other.abort()
    for (let n = 0; n < 10; n += 1) {
      const eve = { authorization: `Bearer ${tokenOf('eve')}` }
      const closing = new AbortController()
      const status = async () => (await fetch(`${url}/turns`, { headers: eve, signal: closing.signal })).status
      await expect.poll(status).toBe(200)
      closing.abort()
    }
  })

  it('ws', async () => {
    const url = (await startServer('ws')).replace('http', 'ws')
    const socket = new WebSocket(`${url}/chat`, { headers: auth })
    onTestFinished(() => socket.terminate())
    await once(socket, 'open')
    const ask = async (text: string): Promise<unknown> => {
      socket.send(text)
      const [data] = (await once(socket, 'message')) as [Buffer]
      return JSON.parse(data.toString())
    }
    expect(await ask('{"id":"used","text":"hello"}')).toEqual({ seq: 1, id: 'used', texts: ['user: hello'] })
    for (const [body, status, error] of wrong) {
      expect(await ask(body)).toMatchObject({ status, error: expect.stringMatching(error) as string })
    }
    socket.send('x'.repeat(20_000))
    expect(await once(socket, 'close')).toEqual([1009, expect.anything()])

    const refused = async (path: string, headers: Record<string, string>): Promise<unknown> => {
      const [, response] = (await once(
        new WebSocket(`${url}${path}`, { headers }).on('error', () => undefined),
        'unexpected-response',
      )) as [unknown, IncomingMessage]
      let body = ''
      for await (const chunk of response.setEncoding('utf8')) body += String(chunk)
      return [response.statusCode, body]
    }
    expect(await refused('/other', auth)).toEqual([404, 'path: expected /chat'])
    expect(await refused('/chat', {})).toEqual([401, expect.stringMatching(/^authorization: /)])
    expect(await refused('/chat?after=x', auth)).toEqual([400, expect.stringMatching(/^after: /)])
    const sockets = Array.from({ length: 5 }, () => new WebSocket(`${url}/chat`, { headers: auth }))
    onTestFinished(() => sockets.forEach((one) => one.terminate()))
    await Promise.all(sockets.map((one) => once(one, 'open')))
    expect(await refused('/chat', auth)).toEqual([429, expect.stringMatching(/^authorization: /)])
    sockets[0]?.close()
    await expect
      .poll(async () => {
        const again = new WebSocket(`${url}/chat`, { headers: auth }).on('error', () => undefined)
        onTestFinished(() => again.terminate())
        const [first] = await Promise.race([
          once(again, 'open').then(() => ['open']),
          once(again, 'unexpected-response').then(() => ['no']),
        ])
        return first
      })
      .toBe('open')
  })
})
