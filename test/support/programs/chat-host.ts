/** A chat server of docs/examples/chat, for tests that kill it. Its argument is JSON. A line on its input asks for a line when every task is delivered. */
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { serve } from '@hono/node-server'
import { runBot } from '../../../docs/examples/chat/bot.js'
import { createChat } from '../../../docs/examples/chat/chat.js'
import { startHonoChat } from '../../../docs/examples/chat/hono.js'
import { createRoute, hostOf } from '../../../docs/examples/chat/next-route.js'
import { startWsChat } from '../../../docs/examples/chat/ws.js'
import { faultyChat } from '../chat/faults.js'
import type { HostArguments } from '../chat/life.js'
import { pacedModel, subagentsIn, tokenOf, USERS } from '../chat/script.js'

const { kind, folder, api = '', fault } = JSON.parse(process.argv[2] ?? '{}') as HostArguments

const options = {
  file: join(folder, 'chat.db'),
  model: pacedModel(),
  subagents: subagentsIn(folder),
  users: new Map(USERS.map((user) => [tokenOf(user), user])),
  keepTurns: Infinity,
}
const create = () => (fault === undefined ? createChat(options) : faultyChat(fault, options))
const chat = kind === 'next' ? hostOf(create) : create()

createInterface(process.stdin).on('line', () => {
  void Promise.all(USERS.map((user) => chat.tasks.conversation(user).onIdle())).then(() => console.log('idle'))
})

if (kind === 'ws') await startWsChat(chat)
else if (kind === 'hono') startHonoChat(chat)
else if (kind === 'bot') await runBot({ chat, api, notes: join(folder, 'notes') })
else {
  const { GET, POST } = createRoute(chat)
  const fetch = (request: Request): Promise<Response> => (request.method === 'POST' ? POST(request) : GET(request))
  serve({ fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => console.log(`http://127.0.0.1:${port}`))
}
