/** Wakes a client that is idle with a command of its own. The message has no result: a hook adds what is owed to it, as to the prompt of a person. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { stateOf } from '../../system/process-identity.js'
import type { FoundClient } from './client-process.js'
import type { HookClient } from './hook-client.js'

/** How long the command may take, in ms. */
const MAX_MS = 20_000

/** The message with which a turn begins. Other users of the machine can read it in the list of processes. */
export const WAKE_MESSAGE = 'A background task has ended. Its result comes with this message.'

/**
 * Runs the command that begins a turn of the conversation, with the program and the environment of the client. Its MCP servers have another one.
 * @returns why it was not run or has failed; undefined if it has begun a turn
 */
export async function wakeIdle(
  { wakeArgs }: HookClient,
  { args, identity }: FoundClient,
  sessionId: string,
): Promise<string | undefined> {
  if (wakeArgs === undefined || identity === undefined) return 'the client cannot be woken'
  if (stateOf(identity) !== 'alive') return 'the client has ended'
  const { pid } = identity
  // A server of the client that outlives its terminals would run turns that nobody sees.
  if (args.includes('app-server') && !hasSocketClient(pid)) return 'no terminal is connected to the client'
  try {
    const program = readlinkSync(`/proc/${pid}/exe`)
    const env = environmentOf(pid)
    return await new Promise((resolve) => {
      execFile(program, [...wakeArgs(sessionId, WAKE_MESSAGE)], { env, timeout: MAX_MS }, (error) => {
        resolve(error?.message)
      })
    })
  } catch (error) {
    return String(error)
  }
}

/** Without /proc it is not known, and the client is not woken. */
function environmentOf(pid: number): Record<string, string> {
  const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean)
  return Object.fromEntries(
    variables.map((variable) => {
      const at = variable.indexOf('=', 1)
      return [variable.slice(0, at), variable.slice(at + 1)]
    }),
  )
}

/** Whether another process is connected to a Unix socket on which this one listens. False if it is unknown (proc(5), /proc/net/unix). */
export function hasSocketClient(pid: number): boolean {
  try {
    const files = readdirSync(`/proc/${pid}/fd`).map((file) => linkOf(`/proc/${pid}/fd/${file}`))
    const own = new Set(files.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []))
    const sockets = readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .flatMap((line) => {
        const [, , , flags = '', , state = '', inode = '', path = ''] = line.trim().split(/\s+/)
        return own.has(inode) && path !== ''
          ? [{ isListening: flags === LISTENING, isConnected: state === CONNECTED, path }]
          : []
      })
    const paths = new Set(sockets.filter(({ isListening }) => isListening).map(({ path }) => path))
    return sockets.some(({ isConnected, path }) => isConnected && paths.has(path))
  } catch {
    return false
  }
}

/** The flags of a socket that accepts connections, and the state of one that is connected, as /proc/net/unix has them. */
const LISTENING = '00010000'
const CONNECTED = '03'

/** A file may be closed meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
