/**
 * The messages between this process and an agent, over its stdin and stdout.
 *
 * The SDK prints unexpected responses and notifications to stderr. They are removed here, so that an agent cannot flood the log. `session/update` is
 * also read here, so that all updates of a turn are processed before its end.
 */
import { ndJsonStream, type AnyMessage, type Stream } from '@agentclientprotocol/sdk'
import type { Writable } from 'node:stream'
import { preview } from '../text/preview.js'
import { ProcessError } from '../runners/process-error.js'

/** The maximum number of unread messages of maximum size; an agent that does not read fails beyond it. */
const MAX_UNREAD_MESSAGES = 4

/** Both directions. */
export interface AgentPipe {
  readonly stream: Stream
  /** Its stdout. */
  readonly onStdout: (chunk: Uint8Array) => void
  /** Messages are written to this stdin. */
  attach(stdin: Writable): void
  /** Ends the input from the agent. */
  readonly close: () => void
  /** Ends the output to the agent. */
  endInput(): void
  /** Whether it was closed. */
  readonly isClosed: boolean
}

/** @param onUpdate called with the parameters of each `session/update` */
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
      // The end of an agent is detected on its stdout.
      if (stdin?.writable !== true) return
      stdin.write(chunk)
      if (stdin.writableLength <= MAX_UNREAD_MESSAGES * maxMessageBytes) return
      const message = `Agent ${preview(command)} was stopped: it does not read, and ${stdin.writableLength} bytes wait for it.`
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
      // EPIPE: the agent has ended.
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
