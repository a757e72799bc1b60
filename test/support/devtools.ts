/**
 * The DevTools protocol of a whole browser, over its WebSocket. Playwright is not used, because it would attach its debugger to every tab, and the
 * extension does not use such a tab.
 */
import type { ProtocolMapping } from 'devtools-protocol/types/protocol-mapping.js'
import { WebSocket } from 'ws'

type Commands = ProtocolMapping.Commands

export interface DevTools {
  send<Method extends keyof Commands>(
    method: Method,
    params?: Commands[Method]['paramsType'][0],
    sessionId?: string,
  ): Promise<Commands[Method]['returnType']>
  /** Calls the listener with each event, until the returned function is called. */
  onEvent(listener: (event: DevToolsEvent) => void): () => void
  close(): void
}

export interface DevToolsEvent {
  readonly method: string
  readonly params: Record<string, unknown>
  readonly sessionId?: string
}

interface Answer {
  readonly id: number
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

/** @param url the URL that the browser prints after `DevTools listening on` */
export async function connectDevTools(url: string): Promise<DevTools> {
  const socket = new WebSocket(url)
  const waiting = new Map<number, (answer: Answer) => void>()
  const listeners = new Set<(event: DevToolsEvent) => void>()
  let count = 0
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  socket.on('message', (data: Buffer) => {
    const answer = JSON.parse(data.toString()) as Answer | DevToolsEvent
    if ('method' in answer) for (const listener of [...listeners]) listener(answer)
    if (!('id' in answer)) return
    waiting.get(answer.id)?.(answer)
    waiting.delete(answer.id)
  })
  socket.on('close', () => {
    for (const end of waiting.values()) end({ id: 0, error: { message: 'The browser is gone.' } })
    waiting.clear()
  })
  return {
    send: (method, params, sessionId) =>
      new Promise((resolve, reject) => {
        count += 1
        waiting.set(count, ({ error, result }) => {
          if (error === undefined) resolve(result as never)
          else reject(new Error(`${method}: ${error.message}`))
        })
        socket.send(JSON.stringify({ id: count, method, params, sessionId }))
      }),
    onEvent: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: () => socket.terminate(),
  }
}
