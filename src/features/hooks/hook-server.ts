/**
 * The socket on which a server answers hook commands. It is in a folder of the user, and its file, which only the user can read, has the token that every
 * call needs. Each connection is one call: a line with a `HookRequest`, and a line with a `HookOutput`. Closing the connection takes the call back.
 */
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { z } from 'zod'
import { parseJson } from '../../data/parse-json.js'
import { lazily } from '../../protocol/lazily.js'
import type { Clock } from '../../system/clock.js'
import { writePrivate } from '../../system/private-file.js'
import { stateOf } from '../../system/process-identity.js'
import { listenOn, MAX_PATH_BYTES } from '../../system/unix-socket.js'
import { HOOK_EVENTS, NOTHING, type HookEvent, type HookOutput } from './hook-client.js'
import { MAX_LINE_BYTES, prepareHookFolder, readServerFiles, type HookServerFile } from './hook-folder.js'

/** The maximum number of open calls. */
const MAX_CONNECTIONS = 16

/** How long a connection may take to send its line, and to read the answer, in ms. */
const LINE_MS = 5000

const requestSchema = lazily(() =>
  z.object({
    token: z.string(),
    client: z.string(),
    event: z.enum(HOOK_EVENTS),
    input: z.record(z.string(), z.unknown()),
  }),
)

export interface HookServerOptions {
  readonly folder: string
  readonly clock: Clock
  readonly describe: () => Omit<HookServerFile, 'socket' | 'token'>
  readonly answer: (
    event: HookEvent,
    input: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ) => Promise<{ readonly output: HookOutput; readonly end: (isWritten: boolean) => void }>
}

export interface HookServer {
  /** Writes the file anew, because what it describes has changed. */
  update(): void
  close(): void
}

/**
 * Opens the socket.
 * @throws Error with the reason why the folder or the socket cannot be used
 */
export async function openHookServer(options: HookServerOptions): Promise<HookServer> {
  const { folder, describe } = options
  prepareHookFolder(folder)
  removeEnded(folder)
  const name = randomBytes(8).toString('hex')
  const [file, path] = [join(folder, `${name}.json`), join(folder, `${name}.sock`)]
  const length = Buffer.byteLength(path)
  if (length > MAX_PATH_BYTES) throw new Error(`${path}: got ${length} bytes, expected at most ${MAX_PATH_BYTES}`)
  const token = globalThis.crypto.randomUUID()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    if (sockets.size >= MAX_CONNECTIONS) {
      socket.destroy()
      return
    }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    serve(socket, token, options)
  })
  const update = (): void =>
    writePrivate(file, JSON.stringify({ ...describe(), socket: path, token }), { replaces: true })
  const close = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
    for (const one of [file, path]) rmSync(one, { force: true })
  }
  try {
    await listenOn(server, path)
    // A client that has ended must not be kept waiting by its server.
    server.unref()
    update()
  } catch (error) {
    close()
    throw error
  }
  return { update, close }
}

/** Removes what killed servers have left. */
function removeEnded(folder: string): void {
  for (const [path, { server }] of readServerFiles(folder)) {
    if (stateOf(server) === 'alive') continue
    for (const one of [path, path.replace(/\.json$/, '.sock')]) rmSync(one, { force: true })
  }
}

function serve(socket: Socket, token: string, { clock, answer }: HookServerOptions): void {
  const gone = new AbortController()
  let text = ''
  let isRead = false
  const closeLater = () =>
    clock.setTimeout(() => socket.destroy(), LINE_MS, { name: 'line of a hook', kind: 'deadline' })
  let limit = closeLater()
  socket.once('close', () => {
    clock.clearTimeout(limit)
    gone.abort()
  })
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    if (isRead) return
    text += chunk
    const end = text.indexOf('\n')
    if (Buffer.byteLength(text) > MAX_LINE_BYTES) socket.destroy()
    else if (end !== -1) {
      isRead = true
      clock.clearTimeout(limit)
      void reply(socket, text.slice(0, end), token, (event, input) => answer(event, input, gone.signal)).then(() => {
        // A command that has been suspended would take the place of others.
        if (!gone.signal.aborted) limit = closeLater()
      })
      text = ''
    }
  })
}

async function reply(
  socket: Socket,
  line: string,
  token: string,
  answer: (event: HookEvent, input: Readonly<Record<string, unknown>>) => ReturnType<HookServerOptions['answer']>,
): Promise<void> {
  const parsed = parseJson(line, 10)
  const request = 'value' in parsed ? requestSchema().safeParse(parsed.value) : undefined
  if (request?.success !== true || request.data.token !== token) {
    socket.end(`${JSON.stringify(NOTHING)}\n`)
    return
  }
  const { output, end } = await answer(request.data.event, request.data.input)
  if (socket.destroyed) {
    end(false)
    return
  }
  socket.once('close', (hadError) => end(!hadError && socket.bytesWritten > 0))
  socket.end(`${JSON.stringify(output)}\n`)
}
