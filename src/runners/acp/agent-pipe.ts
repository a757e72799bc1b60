/**
 * Exchanges messages with an agent over its stdin and stdout.
 *
 * The SDK prints unexpected responses and notifications to stderr. This file drops them first, so that an agent cannot flood the log. It also reads
 * `session/update` itself, so that all updates are processed before the prompt ends.
 */
import { ndJsonStream, type AnyMessage, type Stream } from '@agentclientprotocol/sdk'
import type { Writable } from 'node:stream'
import { preview } from '../../data/preview.js'
import { ProcessError } from '../process-error.js'

/** An agent that does not read its stdin fails when more bytes than this number times `maxMessageBytes` are unread. */
const MAX_UNREAD_MESSAGES = 4

/** The connection to the agent, in both directions. */
export interface AgentPipe {
  readonly stream: Stream
  readonly onStdout: (chunk: Uint8Array) => void
  attach(stdin: Writable): void
  /** Ends the direction from the agent to this process. */
  readonly close: () => void
  /** Ends the direction from this process to the agent. */
  endInput(): void
  readonly isClosed: boolean
}

/**
 * @param maxMessageBytes the maximum size of a message, in bytes
 * @param onUpdate called with the parameters of each `session/update`
 */
export function openAgentPipe(
  command: string,
  maxMessageBytes: number,
  onUpdate: (params: unknown) => void,
): AgentPipe {
  const awaited = new Set<unknown>()
  let stdin: Writable | undefined
  let source: ReadableStreamDefaultController<Uint8Array> | undefined
  let isRead = true
  let isClosed = false
  const input = new ReadableStream<Uint8Array>({
    start: (controller) => {
      source = controller
    },
    cancel: () => {
      isRead = false
    },
  })
  const output = new WritableStream<Uint8Array>({
    write: (chunk) => {
      // If the agent has ended, the message is dropped. The end of its stdout reports that.
      if (stdin?.writable !== true) return
      stdin.write(chunk)
      const maxUnreadBytes = MAX_UNREAD_MESSAGES * maxMessageBytes
      if (stdin.writableLength <= maxUnreadBytes) return
      const message = `Agent ${preview(command)} was stopped: it does not read its stdin. ${stdin.writableLength} bytes are unread, and the maximum is ${maxUnreadBytes} (${MAX_UNREAD_MESSAGES} times maxMessageBytes).`
      throw new ProcessError('ACP_PROTOCOL', message, { command })
    },
  })
  const lines = ndJsonStream(output, input, { maxMessageBytes })
  const writer = lines.writable.getWriter()
  return {
    stream: {
      readable: lines.readable.pipeThrough(
        new TransformStream<AnyMessage, AnyMessage>({
          transform: (message, controller) => {
            if (isWanted(message, awaited, onUpdate)) controller.enqueue(message)
          },
        }),
      ),
      writable: new WritableStream<AnyMessage>({
        write: (message) => {
          if ('method' in message && 'id' in message) awaited.add(message.id)
          return writer.write(message)
        },
      }),
    },
    onStdout: (chunk) => {
      if (isRead && !isClosed) source?.enqueue(chunk)
    },
    attach: (to) => {
      stdin = to
      // The stream emits EPIPE when the agent has ended. The end of its stdout reports that.
      stdin.on('error', () => undefined)
    },
    close: () => {
      if (isRead && !isClosed) source?.close()
      isClosed = true
    },
    endInput: () => {
      stdin?.end()
    },
    get isClosed() {
      return isClosed
    },
  }
}

function isWanted(message: AnyMessage, awaited: Set<unknown>, onUpdate: (params: unknown) => void): boolean {
  if (!('method' in message)) return 'id' in message && awaited.delete(message.id)
  if ('id' in message) return true
  if (message.method === 'session/update') onUpdate(message.params)
  return message.method === '$/cancel_request'
}
