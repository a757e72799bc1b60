/**
 * A chat server with Hono and server-sent events. Each request has `Authorization: Bearer <token>`. `GET /turns?after=<seq>` streams each turn after that
 * one as `{ seq, id?, texts }`, with the `seq` as its event id, which a client may send as `Last-Event-ID` when it reconnects. `POST /messages` takes
 * `{ id, text }`, and answers when its turn is kept. A client that gets no answer sends the same again.
 */
import { serve, type ServerType } from '@hono/node-server'
import { disposeOnSignals } from 'agent-tasks'
import { Hono } from 'hono'
import { streamSSE } from 'hono/streaming'
import type { Server } from 'node:http'
import type { Chat } from './chat.js'
import { ChatError, readAfter, readMessage, toChatError } from './messages.js'

/** More connections are refused. */
const MAX_CONNECTIONS = 2000
/** How often a stream without turns shows that it is there, in ms. */
const HEARTBEAT_MS = 30_000

export function startHonoChat(chat: Chat): ServerType {
  const app = new Hono<{ Variables: { user: string } }>()
  app.use(async (context, next) => {
    context.set('user', chat.userOf(context.req.header('authorization')))
    await next()
  })
  app.post('/messages', async (context) => {
    const message = await readMessage(context.req.raw)
    await chat.send(context.get('user'), message)
    return context.json({ id: message.id })
  })
  app.get('/turns', (context) => {
    const after = readAfter(context.req.header('last-event-id') ?? context.req.query('after'))
    const gone = new AbortController()
    const turns = chat.follow(context.get('user'), after, gone.signal)
    return streamSSE(context, async (stream) => {
      stream.onAbort(() => gone.abort())
      const heartbeat = setInterval(() => void stream.write(':\n\n'), HEARTBEAT_MS)
      gone.signal.addEventListener('abort', () => clearInterval(heartbeat))
      for await (const turn of turns) {
        await stream.writeSSE({ id: String(turn.seq), event: 'turn', data: JSON.stringify(turn) })
      }
    })
  })
  app.notFound(() => {
    throw new ChatError(404, 'path: expected /messages or /turns')
  })
  app.onError((thrown, context) => {
    const { status, message } = toChatError(thrown)
    return context.json({ error: message }, status)
  })

  const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => {
    console.log(`http://127.0.0.1:${port}`)
  }) as Server
  server.maxConnections = MAX_CONNECTIONS
  disposeOnSignals(async () => {
    server.close()
    await chat.dispose()
    server.closeAllConnections()
  })
  return server
}
