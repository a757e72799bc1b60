/**
 * Connections that test programs open to the test. The system closes one when its program dies, however it dies: so a
 * test learns of a death without asking over and over, and can tell a program what to do while it lives.
 */
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** The connection of one program (`programs/tree.mjs`). */
export interface Lifeline {
  readonly pid: number
  /** Tells the program what to do. */
  tell(command: string): void
  /** Resolves when the program has said this line. */
  heard(line: string): Promise<void>
  /** Resolves when the program is dead. */
  readonly gone: Promise<void>
}

/** What a program of the tree is told at its start. */
export interface TreeProgram {
  readonly name: string
  readonly ignoresSigterm?: boolean
  readonly child?: TreeProgram & { readonly output: 'inherit' | 'ignore'; readonly detached?: boolean }
}

export interface Lifelines {
  /** The arguments with which `process.execPath` becomes such a program. */
  argumentsOf(program: TreeProgram): string[]
  /** Resolves when the program of this name is there. */
  program(name: string): Promise<Lifeline>
  /** Cuts all connections; the programs end. */
  readonly close: () => void
}

/** Opens a server on the loopback interface for programs to connect to. */
export async function openLifelines(): Promise<Lifelines> {
  const sockets = new Set<Socket>()
  const arrived = new Map<string, Lifeline>()
  const server = createServer((socket) => {
    sockets.add(socket)
    // A program that is killed may reset its connection.
    socket.on('error', () => undefined)
    const ended = once(socket, 'close').then(() => sockets.delete(socket))
    const lines: string[] = []
    createInterface({ input: socket }).on('line', (line) => {
      lines.push(line)
      socket.emit('said')
      if (lines.length > 1) return
      const [name = '', pid] = line.split(' ')
      arrived.set(name, lifelineOf(socket, Number(pid), lines, ended))
      server.emit('arrived')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const script = fileURLToPath(new URL('programs/tree.mjs', import.meta.url))
  return {
    argumentsOf: (program) => [script, JSON.stringify({ port, ...program })],
    program: async (name) => {
      for (;;) {
        const lifeline = arrived.get(name)
        if (lifeline !== undefined) return lifeline
        await once(server, 'arrived')
      }
    },
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

function lifelineOf(socket: Socket, pid: number, lines: readonly string[], ended: Promise<unknown>): Lifeline {
  return {
    pid,
    tell: (command) => socket.write(`${command}\n`),
    heard: async (line) => {
      while (!lines.includes(line)) await once(socket, 'said')
    },
    gone: ended.then(() => until(() => !isAlive(pid))),
  }
}

/** Whether a process of this id is there and not merely waiting for its parent to take note of its death. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  if (!existsSync('/proc/self/stat')) return true
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    // It went between the two looks.
    return false
  }
}

/** Whether this process has taken note of the death of a child of its own. */
export function isReaped(pid: number): boolean {
  try {
    return !process.kill(pid, 0)
  } catch {
    return true
  }
}

/** Lets the event loop turn until something holds. For what happens in this process soon, and emits no event. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await setImmediate()
}
