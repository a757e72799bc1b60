/**
 * A request and its answer. Results in an answer count as delivered when the answer was written out, and are owed again when the connection failed
 * before that. Only the transport can distinguish these.
 */
import type { ServerResponse } from 'node:http'
import type { JSONRPCMessage, ServerContext } from '@modelcontextprotocol/server'
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'

export interface Exchange {
  /** Aborts when the connection has closed before the answer was written out. */
  readonly lost: AbortSignal
  /** Calls the listener once when the exchange ends, or immediately if it has ended. */
  onEnd(listener: (isWritten: boolean) => void): void
}

/** Finds the exchange of a request. */
export type FindExchange = (context: ServerContext) => Exchange

export interface OpenExchange extends Exchange {
  /** The first call counts. */
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
  // When a socket is destroyed, Node ends its buffered responses as if they had been written.
  response.prependOnceListener('finish', () => exchange.end(socket?.destroyed !== true))
  response.once('close', () => exchange.end(false))
  if (response.destroyed) exchange.end(false)
  return exchange
}

type RequestId = string | number

/** A stdio transport that reports which answers were written. */
export class AnsweringStdioTransport extends StdioServerTransport {
  readonly #open = new Map<RequestId, OpenExchange>()
  /** Stops listening for the cancellation of an open request. */
  readonly #unlisten = new Map<OpenExchange, () => void>()
  readonly #sending = new Set<OpenExchange>()

  /** The exchange of a request that has not been answered. */
  readonly exchangeOf: FindExchange = ({ mcpReq: { id, signal } }) => {
    const exchange = openExchange()
    this.#open.set(id, exchange)
    // A request that is cancelled is not answered.
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
