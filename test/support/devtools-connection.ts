/** A Chromium of its own, spoken to in the raw DevTools protocol. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import WebSocket from 'ws'
import { ProtocolRefusal } from '../../src/extension/debuggee.js'
import { chromiumPath } from './chromium.js'

export interface DevtoolsMessage {
  readonly method: string
  readonly params: Record<string, unknown>
  readonly sessionId?: string
}

export interface DevtoolsConnection {
  send(method: string, params?: object, sessionId?: string): Promise<Record<string, unknown>>
  onMessage(listener: (message: DevtoolsMessage) => void): () => void
  close(): Promise<void>
}

interface Answer {
  readonly id: number
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
}

/** Starts it without a window, with a profile of its own. */
export async function startChromium(args: readonly string[] = []): Promise<DevtoolsConnection> {
  const profile = await mkdtemp(join(tmpdir(), 'agent-tasks-chromium-'))
  const browser = spawn(
    chromiumPath(),
    [
      ...['--headless=new', '--no-sandbox', '--no-first-run', '--disable-gpu', '--remote-debugging-port=0'],
      ...[`--user-data-dir=${profile}`, ...args, 'about:blank'],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const exited = new Promise((resolve) => browser.once('exit', resolve))
  const connection = await openSocket(await addressOf(browser.stderr))
  return {
    ...connection,
    close: async () => {
      await connection.close()
      browser.kill()
      await exited
      await rm(profile, { recursive: true, force: true, maxRetries: 10 })
    },
  }
}

async function addressOf(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface(output)) {
    const [, address] = /^DevTools listening on (ws:\S+)/.exec(line) ?? []
    if (address !== undefined) {
      output.resume()
      return address
    }
  }
  throw new Error('Chromium ended before it listened.')
}

async function openSocket(address: string): Promise<DevtoolsConnection> {
  const socket = new WebSocket(address)
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  const waiting = new Map<number, (answer: Answer) => void>()
  const listeners = new Set<(message: DevtoolsMessage) => void>()
  let lastId = 0
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Answer | DevtoolsMessage
    if ('method' in message) for (const listener of [...listeners]) listener(message)
    else waiting.get(message.id)?.(message)
  })
  return {
    send: async (method, params = {}, sessionId) => {
      const id = ++lastId
      const answer = await new Promise<Answer>((resolve) => {
        waiting.set(id, resolve)
        socket.send(JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) }))
      })
      waiting.delete(id)
      if (answer.error !== undefined) throw new ProtocolRefusal(method, answer.error.message)
      return answer.result ?? {}
    },
    onMessage: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close: async () => {
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.close()
      await closed
    },
  }
}
