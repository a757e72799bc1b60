/**
 * An agent that speaks ACP over its stdin and stdout. Its first argument is a JSON object that says what it does: `{ fails?, silent?, version?, offer?, acts }`.
 * An act is a list `[name, ...arguments]`. Its last message is `{ results }`, with the results of all acts.
 */
import { Readable, Writable } from 'node:stream'
import { agent, methods, ndJsonStream, RequestError } from '@agentclientprotocol/sdk'

const {
  silent,
  replaysLate = false,
  reportsMode = false,
  version = 1,
  fails,
  acts = [],
  sessionId = 'session-1',
  stopReason = 'end_turn',
  capabilities = {},
  replay = [],
  offer = {},
  agentInfo,
} = JSON.parse(process.argv[2])
const { client, agent: ours } = methods
const seen = { cancelled: false }
let onCancel = () => undefined

const update = (context, fields) => context.notify(client.session.update, { sessionId, update: fields })
const say = (context, text, more) =>
  update(context, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text }, ...more })
const raw = (text) => new Promise((resolve) => process.stdout.write(text, resolve))
const options = [
  { optionId: 'always', name: 'Always', kind: 'allow_always' },
  { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
  { optionId: 'no', name: 'No', kind: 'reject_once' },
]

const can = {
  say: (context, text, more) => say(context, text, more),
  update: (context, fields) => update(context, fields),
  request: (context, method, params) =>
    context
      .request(method, { sessionId, ...params })
      .catch((error) => ({ code: error.code, data: error.data, message: error.message })),
  many: (context, count, method, params) =>
    Promise.all(Array.from({ length: count }, () => can.request(context, method, params))),
  permission: (context, toolCall, given = options) =>
    can.request(context, client.session.requestPermission, { toolCall, options: given }),
  raw: (_, text) => raw(text),
  flood: async (_, text, count) => {
    for (let sent = 0; sent < count; sent += 1) await raw(text)
  },
  // Sends requests, and never reads their answers.
  deaf: async (_, count, text) => {
    process.stdin.pause()
    process.stdin.removeAllListeners('data')
    for (let id = 0; id < count; id += 1) {
      await raw(`${JSON.stringify({ jsonrpc: '2.0', id: `x${id}`, method: text })}\n`)
    }
    await new Promise(() => setInterval(() => undefined, 1000))
  },
  log: (_, text) => new Promise((resolve) => process.stderr.write(text, resolve)),
  pause: (_, ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  exit: (_, code) => process.exit(code),
  crash: (_, text) => {
    process.stderr.write(text, () => process.exit(3))
    return new Promise(() => undefined)
  },
  throws: (_, code, message) => {
    throw new RequestError(code, message)
  },
  untilCancelled: () => (seen.cancelled ? undefined : new Promise((resolve) => (onCancel = resolve))),
  never: () => new Promise(() => setInterval(() => undefined, 1000)),
  ignoreSigterm: () => void process.on('SIGTERM', () => undefined),
  hang: () => void setInterval(() => undefined, 1000),
}

if (silent) {
  process.stderr.write('waits for a network')
  setInterval(() => undefined, 1000)
} else {
  let hello
  agent({ name: 'test' })
    .onRequest(ours.initialize, ({ params }) => {
      hello = params
      return {
        protocolVersion: version,
        agentCapabilities: capabilities,
        agentInfo,
        authMethods: [{ id: 'key', name: 'An API key' }],
      }
    })
    .onRequest(ours.session.new, ({ params }) => {
      if (fails) throw RequestError.authRequired()
      hello = { ...hello, cwd: params.cwd }
      return { sessionId, ...offer }
    })
    .onRequest(ours.session.resume, ({ params }) => {
      hello = { ...hello, resumed: params }
      return offer
    })
    .onRequest(ours.session.setMode, async ({ params, client: context }) => {
      hello = { ...hello, mode: params.modeId }
      if (reportsMode) await can.say(context, `[MODE_UPDATE] ${params.modeId}`)
      return {}
    })
    .onRequest(ours.session.setConfigOption, ({ params }) => {
      hello = { ...hello, [params.configId]: params.value }
      return { configOptions: [] }
    })
    .onRequest(ours.session.load, async ({ params, client: context }) => {
      hello = { ...hello, loaded: params }
      const again = async () => {
        for (const fields of replay) await update(context, fields)
      }
      if (replaysLate) setTimeout(again, 50)
      else await again()
      return {}
    })
    .onNotification(ours.session.cancel, () => {
      seen.cancelled = true
      onCancel()
    })
    .onRequest(ours.session.prompt, async ({ params, client: context }) => {
      const results = []
      for (const [name, ...given] of acts) {
        if (name === 'prompt') results.push(params.prompt)
        else if (name === 'hello') results.push(hello)
        else results.push((await can[name](context, ...given)) ?? null)
      }
      if (acts.some(([name]) => ['request', 'many', 'permission', 'prompt', 'hello'].includes(name))) {
        await say(context, JSON.stringify(results), { messageId: 'last' })
      }
      return { stopReason: seen.cancelled ? 'cancelled' : stopReason }
    })
    .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)))
}
