/**
 * A request and its answer. The results in an answer count as delivered when the answer was written out. If the connection failed before that, the
 * results are owed again. Only the transport can distinguish these two cases.
 */
import type { ServerResponse } from 'node:http'
import type { JSONRPCMessage, ServerContext } from '@modelcontextprotocol/server'
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'

export interface Exchange {
  /** Aborts when the connection closes before the answer was written out. */
  readonly lost: AbortSignal
  /** Calls the listener once: when the exchange ends, or immediately if it has ended. `isWritten` says whether the answer was written out. */
  onEnd(listener: (isWritten: boolean) => void): void
}

export type FindExchange = (context: ServerContext) => Exchange

export interface OpenExchange extends Exchange {
  /** Ends the exchange. Only the first call has an effect. */
  end(isWritten: boolean): void
}

export function openExchange(): OpenExchange {
  const lost = new AbortController()
  const listeners: ((isWritten: boolean) => void)[] = []
  let outcome: boolean | undefined
  return {
    lost: lost.signal,
    onEnd: (listener) => {
      if (outcome === undefined) listeners.push(listener)
      else listener(outcome)
    },
    end: (isWritten) => {
      if (outcome !== undefined) return
      outcome = isWritten
      for (const listener of listeners.splice(0)) listener(isWritten)
      if (!isWritten) lost.abort(new Error('The connection has closed.'))
    },
  }
}

/** For a transport that cannot report what it has written: an answer counts as written when it is handed over. */
export function assumedExchange(): Exchange {
  const exchange = openExchange()
  exchange.end(true)
  return exchange
}

/** The exchange of an HTTP request. Call it before the response begins. */
export function httpExchange(response: ServerResponse): Exchange {
  const exchange = openExchange()
  const { socket } = response
  // When a socket is destroyed, Node emits `finish` for its buffered responses, although they were not sent. So the socket is checked.
  response.prependOnceListener('finish', () => exchange.end(socket?.destroyed !== true))
  response.once('close', () => exchange.end(false))
  if (response.destroyed) exchange.end(false)
  return exchange
}

type RequestId = string | number

/** A stdio transport that reports which answers were written. */
export class AnsweringStdioTransport extends StdioServerTransport {
  readonly #open = new Map<RequestId, OpenExchange>()
  /** For each exchange: a function that stops listening for the cancellation of its request. */
  readonly #unlisten = new Map<OpenExchange, () => void>()
  readonly #sending = new Set<OpenExchange>()

  /** Opens the exchange of a request that has not been answered. */
  readonly exchangeOf: FindExchange = ({ mcpReq: { id, signal } }) => {
    const exchange = openExchange()
    this.#open.set(id, exchange)
    // The SDK does not answer a request that is cancelled.
    const onCancel = (): void => {
      if (this.#open.get(id) === exchange) this.#take(id)?.end(false)
    }
    signal.addEventListener('abort', onCancel, { once: true })
    this.#unlisten.set(exchange, () => signal.removeEventListener('abort', onCancel))
    if (signal.aborted) onCancel()
    return exchange
  }

  override async send(message: JSONRPCMessage): Promise<void> {
    const exchange = 'method' in message ? undefined : this.#take(message.id)
    if (exchange === undefined) return super.send(message)
    this.#sending.add(exchange)
    try {
      await super.send(message)
      exchange.end(true)
    } finally {
      exchange.end(false)
      this.#sending.delete(exchange)
    }
  }

  override async close(): Promise<void> {
    await super.close()
    for (const id of [...this.#open.keys()]) this.#take(id)?.end(false)
    for (const exchange of this.#sending) exchange.end(false)
  }

  #take(id: RequestId | undefined): OpenExchange | undefined {
    if (id === undefined) return undefined
    const exchange = this.#open.get(id)
    this.#open.delete(id)
    if (exchange !== undefined) {
      this.#unlisten.get(exchange)?.()
      this.#unlisten.delete(exchange)
    }
    return exchange
  }
}
