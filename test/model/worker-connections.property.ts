/**
 * The connections of a worker, one after another, against a model. Each may be complained about, become ready and fail in a way of its own.
 * What is reported of one depends on that one alone: nothing that an earlier connection left behind (W2).
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { connectInstance } from '../../src/client/connect-instance.js'
import { CLIENT_CLOSE } from '../../src/protocol/client-messages.js'
import { WORKER_CLOSE } from '../../src/protocol/instance-messages.js'
import { createManualClock } from '../../src/testing/manual-clock.js'
import { scriptSockets, settle } from '../support/scripted-sockets.js'

/** One connection: the messages that it gets, and the code with which it closes. */
interface Connection {
  readonly messages: readonly ('welcome' | 'BAD_TOKEN' | 'NO_TOKEN')[]
  readonly closesWith: number
}

const LOST = 1006

const connection: fc.Arbitrary<Connection> = fc.record({
  messages: fc.array(fc.constantFrom<Connection['messages'][number][]>('welcome', 'welcome', 'BAD_TOKEN', 'NO_TOKEN'), {
    maxLength: 3,
  }),
  closesWith: fc.constantFrom(
    ...[LOST, LOST, WORKER_CLOSE.goingAway, WORKER_CLOSE.refused, WORKER_CLOSE.refused, WORKER_CLOSE.silent],
    ...[WORKER_CLOSE.takenOver, WORKER_CLOSE.disconnected, CLIENT_CLOSE.refused],
  ),
})

export const connectionsProperty = () =>
  fc.asyncProperty(fc.array(connection, { minLength: 1, maxLength: 4 }), runConnections)

/** What a host sees: the codes of the errors, and how often the worker registered. */
interface Seen {
  readonly reported: (string | undefined)[]
  registrations: number
  /** The code of the error that ended the worker; undefined while it lives. */
  endedBy: string | undefined
}

/** Plays the connections to a worker and to the model. @throws at the first difference */
export async function runConnections(connections: readonly Connection[]): Promise<void> {
  const clock = createManualClock()
  const sockets = scriptSockets()
  const seen: Seen = { reported: [], registrations: 0, endedBy: undefined }
  const model = createModel()
  const connecting = connectInstance('http://127.0.0.1:3300', {
    tools: [],
    clock,
    WebSocket: sockets.WebSocket,
    reconnect: { initialMs: 100, maxMs: 100, jitter: 0 },
    onError: (error) => seen.reported.push(codeOf(error)),
    fetch: () => {
      seen.registrations += 1
      const registration = { instanceId: 'worker', secret: 'secret', websocketUrl: 'ws://127.0.0.1:3300/worker' }
      return Promise.resolve({ ok: true, status: 201, text: () => Promise.resolve(JSON.stringify(registration)) })
    },
  })
  const end = (error: unknown): void => void (seen.endedBy ??= codeOf(error))
  connecting.then((worker) => worker.closed.then(end), end)
  for (const [at, { messages, closesWith }] of connections.entries()) {
    await settle()
    if (at > 0) clock.advance(100)
    await settle()
    const socket = sockets.last
    socket.open()
    for (const message of messages) {
      socket.receive(
        message === 'welcome'
          ? { type: 'welcome', instanceId: 'worker' }
          : { type: 'error', message, error: message, code: message },
      )
    }
    socket.lose(closesWith)
    await settle()
    model.connect({ messages, closesWith })
    assert.deepEqual(seen, model.seen, `after connection ${at + 1} of ${JSON.stringify(connections)}`)
    if (seen.endedBy !== undefined) break
  }
  const worker = await Promise.race([connecting.catch(() => undefined), settle()])
  await worker?.close()
  assert.equal(clock.pending, 0, 'timers outlive the worker')
}

function createModel() {
  const seen: Seen = { reported: [], registrations: 1, endedBy: undefined }
  let hasBeenReady = false
  let mustRegister = false
  return {
    seen,
    connect({ messages, closesWith }: Connection): void {
      if (mustRegister) seen.registrations += 1
      mustRegister = closesWith === WORKER_CLOSE.refused
      let isReady = false
      let complaint: string | undefined
      for (const message of messages) {
        if (message === 'welcome') [isReady, complaint] = [true, undefined]
        else if (isReady) seen.reported.push(message)
        else complaint = message
      }
      hasBeenReady ||= isReady
      const reason = reasons.get(closesWith) ?? (isReady ? 'CONNECTION_LOST' : 'CONNECTION_FAILED')
      const code = reason === 'UNAUTHORIZED' ? (complaint ?? reason) : reason
      if (!hasBeenReady || FINAL.includes(closesWith)) seen.endedBy = code
      else seen.reported.push(code)
    },
  }
}

const reasons: ReadonlyMap<number, string> = new Map([
  [WORKER_CLOSE.takenOver, 'TAKEN_OVER'],
  [WORKER_CLOSE.disconnected, 'INSTANCE_DISCONNECTED'],
  [WORKER_CLOSE.refused, 'UNAUTHORIZED'],
  [CLIENT_CLOSE.refused, 'UNAUTHORIZED'],
])

const FINAL: readonly number[] = [WORKER_CLOSE.takenOver, WORKER_CLOSE.disconnected, CLIENT_CLOSE.refused]

const codeOf = (error: unknown): string => (error as { code?: string } | undefined)?.code ?? String(error)
