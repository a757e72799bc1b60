/**
 * Watches the `tools/call` requests and answers of an MCP connection. The official client does two things that instances cannot use:
 * - It forgets a request when that is cancelled. But the next command must wait until the server has finished the cancelled call.
 * - It reports progress later, and drops it if the answer follows immediately. This file reports progress as it arrives.
 */
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import type { TaskProgress } from '../../../machines/records.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { callProgressSchema, toolCallResultSchema } from '../../protocol/tool-calls.js'
import type { ToolCallResult } from '../../protocol/tool-result.js'

/** How a `tools/call` request ended. */
export type Answer =
  | { readonly type: 'result'; readonly result: ToolCallResult }
  | { readonly type: 'error' }
  /** The response stream ended without an answer. */
  | { readonly type: 'none' }

interface ExpectedAnswer {
  readonly arrived: Promise<Answer>
  release(): void
}

export interface Answers {
  /** Starts to wait for an answer. Call this method before the request is sent: the request is recognized by its arguments object. */
  expect(args: object, onProgress: (progress: TaskProgress) => void): ExpectedAnswer
  /** Settles all waits with `none`, because no more answers can arrive. */
  end(): void
}

interface Waiting {
  id: string | number | undefined
  readonly resolve: (answer: Answer) => void
  readonly onProgress: (progress: TaskProgress) => void
}

/** Watches a transport. Call this function before a client connects with the transport. */
export function watchAnswers(transport: Transport): Answers {
  const unsent = new WeakMap<object, Waiting>()
  const sent = new Map<string | number, Waiting>()
  const settle = (id: string | number, answer: Answer): void => {
    sent.get(id)?.resolve(answer)
    sent.delete(id)
  }

  /** Reports progress. The client uses the id of each request as its progress token. */
  function report(params: unknown): void {
    const parsed = callProgressSchema.safeParse(params)
    const { progressToken } = Object(params) as { readonly progressToken?: string | number }
    if (!parsed.success || progressToken === undefined) return
    const { progress, total, message } = parsed.data
    sent.get(progressToken)?.onProgress({
      progress,
      ...omitUndefined({ total, message }),
    })
  }

  const { onmessage } = transport
  transport.onmessage = (message, extra) => {
    onmessage?.(message, extra)
    if ('method' in message) {
      if (message.method === 'notifications/progress') report(message.params)
      return
    }
    if (message.id === undefined) return
    settle(message.id, answerOf(message))
  }

  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    const waiting =
      'method' in message && 'id' in message ? unsent.get(Object(message.params?.['arguments']) as object) : undefined
    if (waiting === undefined || !('id' in message) || message.id === undefined) return send(message, options)
    const { id } = message
    waiting.id = id
    sent.set(id, waiting)
    return send(message, {
      ...options,
      onRequestStreamEnd: () => {
        settle(id, { type: 'none' })
        options?.onRequestStreamEnd?.()
      },
    })
  }

  return {
    expect: (args, onProgress) => {
      let resolve: (answer: Answer) => void = () => undefined
      const arrived = new Promise<Answer>((done) => (resolve = done))
      const waiting: Waiting = { id: undefined, resolve, onProgress }
      unsent.set(args, waiting)
      return {
        arrived,
        release: () => {
          unsent.delete(args)
          if (waiting.id !== undefined) sent.delete(waiting.id)
        },
      }
    },
    end: () => {
      for (const id of [...sent.keys()]) settle(id, { type: 'none' })
    },
  }
}

function answerOf(message: JSONRPCMessage): Answer {
  const parsed = 'result' in message ? toolCallResultSchema.safeParse(message.result) : undefined
  return parsed?.success === true ? { type: 'result', result: parsed.data } : { type: 'error' }
}
