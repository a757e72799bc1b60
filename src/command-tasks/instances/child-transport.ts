/**
 * Runs an MCP server as a child process, for the official MCP client. It replaces the stdio transport of that client for two reasons. The server
 * and the processes that it starts end with `close`, and with this process (`run-processes.ts`). And the transport records how the server ended, and its
 * last stderr output.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { serializeMessage, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client'
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio'
import type { Clock } from '../../system/clock.js'
import { lastChars } from '../../data/cut-text.js'
import { hasGroups } from '../../engine/process-group.js'
import { RunProcesses } from '../../engine/run-processes.js'
import { createDelay } from './delay.js'
import { MessageLines, UnknownRequestError } from './message-lines.js'

/** A program that speaks MCP over its stdin and stdout. */
export interface ChildProgram {
  /** The path of the program, or a name that is looked up in PATH. */
  readonly command: string
  /** The arguments of the program. No shell is involved. */
  readonly args?: readonly string[] | undefined
  /** Environment variables to add. The program also inherits variables that are safe to pass on, such as PATH and HOME. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** The working directory of the program. Default: that of this process. */
  readonly cwd?: string | undefined
}

export interface ChildTransport extends Transport {
  /** How the program ended, as text. Undefined while it runs. */
  readonly end: string | undefined
  /** The last 2000 characters of its stderr. */
  readonly stderrTail: string
}

const STDERR_CHARS = 2000

/** @param graceMs how long the program may take to end after its stdin is closed, and then again after SIGTERM, in ms */
export function createChildTransport(program: ChildProgram, clock: Clock, graceMs: number): ChildTransport {
  const { command, args = [], env, cwd } = program
  let child: ChildProcessByStdio<Writable, Readable, Readable> | undefined
  let run: RunProcesses | undefined
  let isClosing = false
  let isKilling = false
  let end: string | undefined
  let stderrTail = ''
  let markGone: () => void = () => undefined
  const gone = new Promise<void>((resolve) => (markGone = resolve))

  /** Why this process ended the program, if it did so because of what the program sent. */
  let fault: string | undefined

  const hasEnded = (): boolean => end !== undefined
  const lines = new MessageLines(
    (message) => transport.onmessage?.(message),
    (error) => {
      transport.onerror?.(error)
      // The request that waits for the message would wait forever.
      if (error instanceof UnknownRequestError) giveUp(error)
    },
  )

  function giveUp(error: Error): void {
    fault ??= error.message
    void transport.close()
  }

  function read(chunk: Buffer): void {
    if (fault !== undefined) return
    try {
      lines.read(chunk)
    } catch (error) {
      transport.onerror?.(error as Error)
      giveUp(error as Error)
    }
  }

  async function finish(how: string): Promise<void> {
    end = fault === undefined ? how : `${how}, because ${fault}`
    // Ends the processes that the server has left behind before the pipes are awaited, because they keep the pipes open.
    if (isClosing) run?.ask()
    const grace = createDelay(clock, isClosing ? graceMs : 0)
    void grace.passed.then(() => (isKilling = true))
    await run?.untilGone(() => isKilling)
    grace.cancel()
    run?.close()
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
        const processes = new RunProcesses({ killSignal: 'SIGTERM', graceMs })
        run = processes
        const started = spawn(command, args, {
          cwd,
          env: processes.environment({ ...getDefaultEnvironment(), ...env }),
          stdio: ['pipe', 'pipe', 'pipe'],
          detached: hasGroups,
          windowsHide: true,
        })
        child = started
        // It is recorded before the event `spawn`. If this process ended in between, the server would go on running.
        processes.lead(started)
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
          // A broken pipe often means that the process is ending. The wait lets its exit code become known, which explains more.
          const wait = createDelay(clock, 500)
          void Promise.race([gone, wait.passed]).then(() => {
            wait.cancel()
            reject(error)
          })
        })
      }),
    close: async () => {
      if (child?.pid === undefined) return
      isClosing = true
      child.stdin.end()
      for (const name of ['SIGTERM', 'SIGKILL'] as const) {
        if (hasEnded()) break
        const grace = createDelay(clock, graceMs)
        await Promise.race([gone, grace.passed])
        grace.cancel()
        if (hasEnded()) break
        if (name === 'SIGTERM') run?.ask()
        else {
          isKilling = true
          run?.kill()
        }
      }
      await gone
    },
  }
  return transport
}

function closed(child: ChildProcessByStdio<Writable, Readable, Readable>): Promise<void> {
  return new Promise((resolve) => child.once('close', resolve))
}
