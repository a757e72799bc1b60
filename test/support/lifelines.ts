/**
 * Connections from test programs to the test. The system closes a connection when its program dies, however that happens. So a test notices the death
 * without polling. The test also sends commands to the program over the connection.
 */
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** The connection with one program (`programs/tree.mjs`). */
export interface Lifeline {
  readonly pid: number
  /** Sends the program a command. */
  tell(command: string): void
  /** Resolves when the program has sent this line, now or earlier. */
  heard(line: string): Promise<void>
  /** Resolves when the program is dead. */
  readonly gone: Promise<void>
}

/** The arguments of a program. */
export interface TreeProgram {
  readonly name: string
  readonly ignoresSigterm?: boolean
  readonly child?: TreeProgram & {
    readonly output: 'inherit' | 'ignore'
    readonly detached?: boolean
    readonly isHidden?: boolean
  }
}

export interface Lifelines {
  /** The arguments for `process.execPath` with which it runs such a program. */
  argumentsOf(program: TreeProgram): string[]
  /** Resolves when the program with this name has connected. */
  program(name: string): Promise<Lifeline>
  /** Cuts all connections, which ends the programs. */
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

/** Whether a process is alive. A zombie is not. */
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
    // The process exited between the two checks.
    return false
  }
}

/** Whether this process has reaped a child that exited. */
export function isReaped(pid: number): boolean {
  try {
    return !process.kill(pid, 0)
  } catch {
    return true
  }
}

/** How often `until` turns the event loop before it pauses between two turns. */
const EAGER_TURNS = 100

/**
 * Turns the event loop until a condition is true, for something in this process that emits no event. What takes longer waits for another process, which
 * needs the processor.
 */
export async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; !condition(); turn += 1) await (turn < EAGER_TURNS ? setImmediate() : setTimeout(1))
}
