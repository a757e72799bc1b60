/**
 * The messages between this process and an agent, over its stdin and stdout.
 *
 * What the SDK would answer by printing to stderr of this process, an agent that floods it cannot reach: answers that nobody waits for and notifications
 * are taken out here. `session/update` is read here as well, so that all updates of a turn are read before its end is.
 */
import { ndJsonStream, type AnyMessage, type Stream } from '@agentclientprotocol/sdk'
import type { Writable } from 'node:stream'
import { preview } from '../text/preview.js'
import { ProcessError } from '../runners/process-error.js'

/** How many messages of the longest length may wait for an agent that does not read. */
const MAX_UNREAD_MESSAGES = 4

/** Both directions. */
export interface AgentPipe {
  readonly stream: Stream
  /** Its stdout. */
  readonly onStdout: (chunk: Uint8Array) => void
  /** Messages are written to this stdin. */
  attach(stdin: Writable): void
  /** Nothing more comes from the agent. */
  readonly close: () => void
  /** Nothing more is sent to the agent. */
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
      // The end of an agent is noticed by its stdout.
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
      // EPIPE: it has ended.
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
