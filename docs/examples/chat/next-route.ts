/**
 * A chat as a route handler of the App Router of Next.js, for one server that keeps running. Each request has `Authorization: Bearer <token>`. `POST`
 * takes `{ id, text }`, and answers when its turn is kept; a client that gets no answer sends the same again. `GET ?after=<seq>` returns the turns after
 * that one, also those for results that have arrived meanwhile. `app/api/chat/route.ts`:
 *
 * ```ts
 * export const runtime = 'nodejs' // not on the edge: the store is a file
 * export const { GET, POST } = createRoute(hostOf(() => createChat({ file: 'chat.db', model, subagents, users })))
 * ```
 */
import { disposeOnSignals } from 'agent-tasks'
import type { Chat } from './chat.js'
import { readAfter, readMessage, toChatError } from './messages.js'

const KEY = Symbol.for('chat')

/** Next.js loads the module of a route again when it changes. The store has one host, so that is not made again. */
export function hostOf(create: () => Chat): Chat {
  const hosts = globalThis as { [KEY]?: Chat }
  if (hosts[KEY] === undefined) {
    const chat = create()
    hosts[KEY] = chat
    disposeOnSignals(() => chat.dispose())
  }
  return hosts[KEY]
}

export interface Route {
  readonly GET: (request: Request) => Promise<Response>
  readonly POST: (request: Request) => Promise<Response>
}

export function createRoute(chat: Chat): Route {
  const answer =
    (handle: (user: string, request: Request) => Promise<object>) =>
    async (request: Request): Promise<Response> => {
      try {
        return Response.json(await handle(chat.userOf(request.headers.get('authorization')), request))
      } catch (error) {
        const { status, message } = toChatError(error)
        return Response.json({ error: message }, { status })
      }
    }
  return {
    POST: answer(async (user, request) => {
      const message = await readMessage(request)
      await chat.send(user, message)
      return { id: message.id }
    }),
    GET: answer(async (user, { url }) => {
      const after = readAfter(new URL(url).searchParams.get('after'))
      return { turns: await chat.turnsOf(user, after) }
    }),
  }
}
