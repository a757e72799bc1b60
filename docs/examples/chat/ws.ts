/**
 * A chat server with `ws`. A client connects to `/chat?after=<seq>` with `Authorization: Bearer <token>`, and gets each turn after that one as
 * `{ seq, id?, texts }`. It sends `{ id, text }`, and again after a reconnect until it has seen a turn with this id. What is wrong with a message
 * comes back as `{ id?, status, error }`.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { disposeOnSignals } from 'agent-tasks'
import { WebSocketServer, type WebSocket } from 'ws'
import type { Chat } from './chat.js'
import { ChatError, MAX_BYTES, parseMessage, readAfter, toChatError } from './messages.js'
import type { SeenTurn } from './turns.js'

/** A client that does not read is dropped when this many bytes wait for it, or when it answers no ping in this time. */
const MAX_BUFFERED = 1_000_000
const HEARTBEAT_MS = 30_000

export async function startWsChat(chat: Chat): Promise<void> {
  const server = createServer((_, response) => response.writeHead(426).end('upgrade: expected websocket'))
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_BYTES })
  server.on('upgrade', (request, socket, head) => {
    try {
      const stream = openStream(chat, request)
      socket.once('close', () => stream.gone.abort())
      sockets.handleUpgrade(request, socket, head, (client) => {
        serve(chat, client, stream).catch(() => client.close(1011))
      })
    } catch (error) {
      const { status, message } = toChatError(error)
      socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n${message}`)
    }
  })
  server.maxConnections = 2000
  await once(server.listen(0, '127.0.0.1'), 'listening')
  disposeOnSignals(async () => {
    server.close()
    for (const client of sockets.clients) client.close(1001, 'The server ends.')
    await chat.dispose()
  })
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
}

function openStream(chat: Chat, { url = '', headers }: IncomingMessage) {
  const { pathname, searchParams } = new URL(url, 'http://127.0.0.1')
  if (pathname !== '/chat') throw new ChatError(404, 'path: expected /chat')
  const user = chat.userOf(headers.authorization)
  const gone = new AbortController()
  return { user, gone, turns: chat.follow(user, readAfter(searchParams.get('after')), gone.signal) }
}

async function serve(chat: Chat, client: WebSocket, { user, turns }: ReturnType<typeof openStream>): Promise<void> {
  const say = (line: SeenTurn | { id?: string; status: number; error: string }): Promise<unknown> => {
    if (client.bufferedAmount > MAX_BUFFERED) client.terminate()
    return new Promise((resolve) => client.send(JSON.stringify(line), resolve))
  }
  const take = async (json: string): Promise<void> => {
    let id: string | undefined
    try {
      const message = parseMessage(json)
      id = message.id
      await chat.send(user, message)
    } catch (error) {
      const { status, message } = toChatError(error)
      await say({ ...(id !== undefined && { id }), status, error: message })
    }
  }
  client.on('message', (data: Buffer) => void take(data.toString()))
  client.on('error', () => undefined) // 'close' follows.
  let isThere = true
  client.on('pong', () => (isThere = true))
  const heartbeat = setInterval(() => {
    if (!isThere) client.terminate()
    isThere = false
    client.ping()
  }, HEARTBEAT_MS)
  client.on('close', () => clearInterval(heartbeat))
  for await (const turn of turns) await say(turn)
}
