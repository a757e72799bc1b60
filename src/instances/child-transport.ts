/**
 * An MCP server as a child process, for the official client: it leads a process group of its own, so that nothing that it started
 * outlives `close`, and it can say how it ended and what it wrote to stderr, which the client's own stdio transport cannot.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { ReadBuffer, serializeMessage, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client'
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio'
import type { Clock } from '../clock.js'
import { hasGroups, leadGroup, type ProcessGroup } from '../engine/process-group.js'
import { createDelay } from './delay.js'

/** A program that speaks MCP over its stdin and stdout. */
export interface ChildProgram {
  /** A name that is looked up in PATH, or a path. */
  readonly command: string
  /** Each is handed over as it is: no shell is involved. */
  readonly args?: readonly string[] | undefined
  /** Added to the few variables that are safe to inherit, such as PATH and HOME. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** The directory it runs in. Default: that of this process. */
  readonly cwd?: string | undefined
}

export interface ChildTransport extends Transport {
  /** How it ended, in words; undefined while it runs. */
  readonly end: string | undefined
  /** The end of what it wrote to stderr. */
  readonly stderrTail: string
}

const STDERR_CHARS = 2000

/** @param graceMs how long a child may take to end after its stdin was closed, and again after SIGTERM, in ms */
export function createChildTransport(program: ChildProgram, clock: Clock, graceMs: number): ChildTransport {
  const { command, args = [], env, cwd } = program
  const buffer = new ReadBuffer()
  let child: ChildProcessByStdio<Writable, Readable, Readable> | undefined
  let group: ProcessGroup | undefined
  let end: string | undefined
  let stderrTail = ''
  let markGone: () => void = () => undefined
  const gone = new Promise<void>((resolve) => (markGone = resolve))

  const hasEnded = (): boolean => end !== undefined

  function read(chunk: Buffer): void {
    try {
      buffer.append(chunk)
    } catch (error) {
      transport.onerror?.(error as Error)
      void transport.close()
      return
    }
    for (;;) {
      try {
        const message = buffer.readMessage()
        if (message === null) return
        transport.onmessage?.(message)
      } catch (error) {
        transport.onerror?.(error as Error)
      }
    }
  }

  async function finish(how: string): Promise<void> {
    end = how
    // Whoever it left behind holds its pipes open, so this comes before they are waited for.
    group?.end()
    const drained = createDelay(clock, 500)
    await Promise.race([child === undefined ? undefined : closed(child), drained.passed])
    drained.cancel()
    child?.stdout.destroy()
    child?.stderr.destroy()
    markGone()
    transport.onclose?.()
  }

  const transport: ChildTransport = {
    get end() {
      return end
    },
    get stderrTail() {
      return stderrTail
    },
    start: () =>
      new Promise((resolve, reject) => {
        const started = spawn(command, args, {
          cwd,
          env: { ...getDefaultEnvironment(), ...env },
          stdio: ['pipe', 'pipe', 'pipe'],
          detached: hasGroups,
          windowsHide: true,
        })
        child = started
        started.once('spawn', () => {
          group = leadGroup(started)
          resolve()
        })
        started.once('error', (error) => {
          end ??= 'did not start'
          markGone()
          reject(error)
        })
        started.once(
          'exit',
          (code, name) => void finish(name === null ? `exited with code ${code ?? 'unknown'}` : `was ended by ${name}`),
        )
        started.stdin.on('error', (error) => transport.onerror?.(error))
        started.stdout.on('data', read)
        started.stderr.setEncoding('utf8').on('data', (text: string) => {
          stderrTail = (stderrTail + text).slice(-STDERR_CHARS).replace(/^[\uDC00-\uDFFF]/, '')
        })
      }),
    send: (message: JSONRPCMessage) =>
      new Promise((resolve, reject) => {
        if (child === undefined || end !== undefined) throw new Error('The server is not running.')
        child.stdin.write(serializeMessage(message), (error) => {
          if (!error) {
            resolve()
            return
          }
          // It is about to end: how it did says more than a broken pipe.
          const wait = createDelay(clock, 500)
          void Promise.race([gone, wait.passed]).then(() => {
            wait.cancel()
            reject(error)
          })
        })
      }),
    close: async () => {
      if (child?.pid === undefined) return
      child.stdin.end()
      for (const name of ['SIGTERM', 'SIGKILL'] as const) {
        if (hasEnded()) break
        const grace = createDelay(clock, graceMs)
        await Promise.race([gone, grace.passed])
        grace.cancel()
        if (!hasEnded()) group?.signal(name)
      }
      await gone
    },
  }
  return transport
}

function closed(child: ChildProcessByStdio<Writable, Readable, Readable>): Promise<void> {
  return new Promise((resolve) => child.once('close', resolve))
}
