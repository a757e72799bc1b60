/** Authenticates a socket whose upgrade request had no token: its first message must be `authenticate`. */
import type { RawData, WebSocket } from 'ws'
import type { Clock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { toJson } from './http/json.js'
import { parseJson } from '../data/parse-json.js'
import { authenticateSchema, CLIENT_CLOSE } from '../protocol/client-messages.js'
import { textOf } from './connection.js'

export interface AuthenticationOptions {
  readonly clock: Clock
  /** How long the client may take to authenticate, in ms. */
  readonly timeoutMs: number
  readonly isToken: (token: string) => boolean
  /** Called with the reason when the client is refused. */
  readonly onRefused: (reason: string) => void
  /** Called after a valid token, before the next message of the client is read. */
  readonly onAuthenticated: () => void
}

/** Reads the first message, which must be `authenticate` with a valid token. Otherwise, and after `timeoutMs`, the socket is closed (1008). */
export function awaitAuthentication(socket: WebSocket, options: AuthenticationOptions): void {
  const { clock, timeoutMs, isToken, onAuthenticated } = options
  const refuse = (answer: { readonly error: string; readonly [field: string]: unknown }): void => {
    finish()
    options.onRefused(answer.error)
    socket.send(toJson(answer))
    socket.close(CLIENT_CLOSE.refused, 'Not authenticated.')
  }
  const onMessage = (data: RawData): void => {
    const parsed = parseJson(textOf(data), MAX_NESTING)
    const message = authenticateSchema.safeParse('value' in parsed ? parsed.value : undefined)
    if (!message.success) {
      const error = 'This server requires a token. The first message must be authenticate { token }.'
      refuse({ type: 'error', message: error, error: 'Not authenticated', code: 'UNAUTHORIZED' })
      return
    }
    const { token, requestId } = message.data
    const answer = { type: 'authenticate_response', ...omitUndefined({ requestId }) }
    if (!isToken(token)) {
      refuse({ ...answer, success: false, error: 'Invalid token.', code: 'UNAUTHORIZED' })
      return
    }
    finish()
    socket.send(toJson({ ...answer, success: true }))
    onAuthenticated()
  }
  const timer = clock.setTimeout(() => {
    refuse({ type: 'error', message: 'No token was sent in time.', error: 'Not authenticated', code: 'UNAUTHORIZED' })
  }, timeoutMs)
  const finish = (): void => {
    clock.clearTimeout(timer)
    socket.off('message', onMessage)
  }
  socket.on('message', onMessage)
  socket.once('close', finish)
}

/** A small limit is enough, because `authenticate` is a flat object. */
const MAX_NESTING = 4
