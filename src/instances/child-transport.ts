/**
 * An MCP server as a child process, for the official client. Unlike the client's own stdio transport, it makes the server the leader of
 * a process group, so that no process of the group outlives `close`, and records how it ended and the end of its stderr.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { ReadBuffer, serializeMessage, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client'
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio'
import type { Clock } from '../clock.js'
import { lastChars } from '../text/cut-text.js'
import { hasGroups, leadGroup, type ProcessGroup } from '../engine/process-group.js'
import { createDelay } from './delay.js'

/** A program that speaks MCP over its stdin and stdout. */
export interface ChildProgram {
  /** A path, or a name that is looked up in PATH. */
  readonly command: string
  /** Its arguments. No shell is involved. */
  readonly args?: readonly string[] | undefined
  /** Variables to add to those that are safe to inherit, such as PATH and HOME. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Its working directory. Default: that of this process. */
  readonly cwd?: string | undefined
}

export interface ChildTransport extends Transport {
  /** How it ended, as text; undefined while it runs. */
  readonly end: string | undefined
  /** The end of its stderr. */
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
    // Before its pipes end, because processes that it left behind hold them open.
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
        // Immediately, because an exit of this process before the event `spawn` would leave the server running.
        if (started.pid !== undefined) group = leadGroup(started)
        started.once('spawn', resolve)
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
          stderrTail = lastChars(stderrTail + text, STDERR_CHARS)
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
          // The process is about to exit, and its exit code says more than a broken pipe.
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
