/**
 * Where hook commands find the running servers: one file and one socket for each server, in a folder of the user. Both have different environments, so
 * the folder depends on none.
 */
import { chmodSync, lstatSync, mkdirSync, readdirSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { parseJson } from '../../data/parse-json.js'
import { readPrivate } from '../../system/private-file.js'
import { stateOf, type ProgramIdentity } from '../../system/process-identity.js'

/** The maximum size of a server's file, in bytes (128 KiB). A hundred ids of 200 escaped characters fit. */
const MAX_FILE_BYTES = 128 * 1024

/** The maximum size of the line that a hook command sends, in bytes (64 KiB). */
export const MAX_LINE_BYTES = 64 * 1024

/** A running server, as its file describes it. */
export interface HookServerFile {
  readonly socket: string
  readonly token: string
  readonly client: string
  readonly server: ProgramIdentity
  /** The process of the client that started the server. */
  readonly clientProcess: ProgramIdentity
  /** The task whose program started the server (`AGENT_TASK_ID`), if any. */
  readonly taskId?: string | undefined
  readonly sessionIds: readonly string[]
}

/** What a hook command asks. The answer is a line with a `HookOutput`. */
export interface HookRequest {
  readonly token: string
  readonly client: string
  readonly event: string
  /** The fields of the hook, as the client names them. */
  readonly input: Readonly<Record<string, unknown>>
}

export const hookFolder = (): string => join(userInfo().homedir, '.agent-tasks', 'hooks')

/** @throws Error with the reason why the folder cannot be used */
export function prepareHookFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const problem = problemOf(folder)
  if (problem !== undefined) throw new Error(`${folder}: ${problem}`)
  chmodSync(folder, 0o700)
}

function problemOf(folder: string): string | undefined {
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  if (stats === undefined) return 'it does not exist'
  if (!stats.isDirectory()) return 'expected a folder, and no symbolic link'
  return stats.uid === process.getuid?.() ? undefined : 'it belongs to another user'
}

/** Returns the files in the folder, also those of servers that have ended. A file that is damaged, or that others can read, is left out. */
export function readServerFiles(folder: string): readonly (readonly [path: string, file: HookServerFile])[] {
  if (problemOf(folder) !== undefined) return []
  return readdirSync(folder).flatMap((name) => {
    if (!name.endsWith('.json')) return []
    const path = join(folder, name)
    const file = readServerFile(path)
    return file === undefined ? [] : [[path, file] as const]
  })
}

function readServerFile(path: string): HookServerFile | undefined {
  try {
    const parsed = parseJson(readPrivate(path, 'hooks', MAX_FILE_BYTES) ?? '', 10)
    return 'value' in parsed && isServerFile(parsed.value) ? parsed.value : undefined
  } catch {
    return undefined
  }
}

function isServerFile(value: unknown): value is HookServerFile {
  const { socket, token, client, server, clientProcess, sessionIds } = Object(value) as Partial<HookServerFile>
  const hasTexts = [socket, token, client].every((text) => typeof text === 'string')
  const hasProcesses = [server, clientProcess].every((one) => typeof one?.pid === 'number')
  return hasTexts && hasProcesses && Array.isArray(sessionIds)
}

/** The processes above this one, the nearest first. */
export function ancestorsOf(pid: number, parentOf: (pid: number) => number | undefined, max = 64): readonly number[] {
  const ancestors: number[] = []
  for (let at = parentOf(pid); at !== undefined && at > 1 && ancestors.length < max; at = parentOf(at)) {
    ancestors.push(at)
  }
  return ancestors
}

export interface Caller {
  readonly client: string
  readonly sessionId: string | undefined
  readonly taskId: string | undefined
  /** Whether the call may name a conversation that its server does not know yet. */
  readonly mayBegin: boolean
  /** The processes above the hook command, the nearest first. */
  readonly ancestors: readonly number[]
  /** Whether a process runs the client. Default: none does */
  readonly isClient?: (pid: number) => boolean
}

/**
 * Finds the server that a hook command belongs to. An id that a server knows decides alone. Otherwise the client's process does, for a server that knows
 * no id yet, and for a call that begins a conversation, as after `/clear`: it is the nearest process above the command that has started a server. The
 * search ends at a server, and at a client without one, because what is above that belongs to another agent. A hook inside a run finds only servers that
 * were started inside it.
 */
export function findServer(files: readonly HookServerFile[], caller: Caller): HookServerFile | undefined {
  const running = files.filter(({ server }) => stateOf(server) === 'alive')
  const candidates = running.filter(({ client, taskId }) => client === caller.client && taskId === caller.taskId)
  const named = candidates.filter(({ sessionIds }) => sessionIds.includes(caller.sessionId ?? ''))
  if (named.length > 0) return nearestOf(named, caller.ancestors) ?? (named.length === 1 ? named[0] : undefined)
  const withoutId = candidates.filter(({ sessionIds }) => sessionIds.length === 0 || caller.mayBegin)
  for (const pid of caller.ancestors) {
    if (running.some(({ server }) => server.pid === pid)) return undefined
    const found = withoutId.find(({ clientProcess }) => clientProcess.pid === pid && stateOf(clientProcess) === 'alive')
    if (found !== undefined || caller.isClient?.(pid) === true) return found
  }
  return undefined
}

function nearestOf(files: readonly HookServerFile[], ancestors: readonly number[]): HookServerFile | undefined {
  const order = ({ clientProcess: { pid } }: HookServerFile): number => {
    const at = ancestors.indexOf(pid)
    return at === -1 ? Infinity : at
  }
  const [nearest] = [...files].sort((a, b) => order(a) - order(b))
  return nearest !== undefined && order(nearest) < Infinity ? nearest : undefined
}
