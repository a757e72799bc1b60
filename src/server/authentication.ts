/** What a socket must say first when its upgrade carried no token: `authenticate`. */
import type { RawData, WebSocket } from 'ws'
import type { Clock } from '../clock.js'
import { authenticateSchema, CLIENT_CLOSE } from '../protocol/client-messages.js'
import { textOf } from './connection.js'
import { parseJson, toJson } from './json.js'

export interface AuthenticationOptions {
  readonly clock: Clock
  /** How long it may take, in ms. */
  readonly timeoutMs: number
  readonly isToken: (token: string) => boolean
  /** Called when it has said a right token, before its next message is read. */
  readonly onAuthenticated: () => void
}

/** Answers the first message; closes the socket (1008) when it is not a right `authenticate`, or does not come in time. */
export function awaitAuthentication(socket: WebSocket, options: AuthenticationOptions): void {
  const { clock, timeoutMs, isToken, onAuthenticated } = options
  const refuse = (answer: object): void => {
    finish()
    socket.send(toJson(answer))
    socket.close(CLIENT_CLOSE.refused, 'Not authenticated.')
  }
  const onMessage = (data: RawData): void => {
    const parsed = parseJson(textOf(data), MAX_NESTING)
    const message = authenticateSchema.safeParse('value' in parsed ? parsed.value : undefined)
    if (!message.success) {
      const error = 'The first message must be authenticate { token }.'
      refuse({ type: 'error', message: error, error: 'Not authenticated', code: 'UNAUTHORIZED' })
      return
    }
    const { token, requestId } = message.data
    const answer = { type: 'authenticate_response', ...(requestId !== undefined && { requestId }) }
    if (!isToken(token)) {
      refuse({ ...answer, success: false, error: 'That is no token of this server.', code: 'UNAUTHORIZED' })
      return
    }
    finish()
    socket.send(toJson({ ...answer, success: true }))
    onAuthenticated()
  }
  const timer = clock.setTimeout(() => {
    refuse({ type: 'error', message: 'No token came in time.', error: 'Not authenticated', code: 'UNAUTHORIZED' })
  }, timeoutMs)
  const finish = (): void => {
    clock.clearTimeout(timer)
    socket.off('message', onMessage)
  }
  socket.on('message', onMessage)
  socket.once('close', finish)
}

/** An `authenticate` has no depth. */
const MAX_NESTING = 4
