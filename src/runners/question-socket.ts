/**
 * The socket over which a program asks questions (promise F6). It is a Unix socket in a private folder, which is removed when the run ends.
 *
 * Each connection is one question. The program sends a line of JSON, `{ token, message, schema? }`. It receives one line: the answer, or `{ error: {
 * code, message } }`. Closing the connection withdraws the question. Half-closing withdraws it, too, because Node emits `end` in both cases, and no
 * other event when the second half is closed later.
 */
import type { Socket } from 'node:net'
import { z } from 'zod'
import type { RunContext } from '../engine/runner.js'
import { AgentTasksError } from '../errors.js'
import { nodeBuiltin } from '../system/node-builtins.js'
import { listenOn, MAX_PATH_BYTES } from '../system/unix-socket.js'
import { describeFailure } from '../protocol/outcomes.js'
import { lazily } from '../protocol/lazily.js'
import type { TaskQuestionInput } from '../protocol/task-questions.js'

/** The maximum number of open questions of a run. */
export const MAX_CONNECTIONS = 16

/** The maximum length of a question's line, in characters. */
export const MAX_LINE_CHARS = 65_536

export const SOCKET_VARIABLE = 'AGENT_TASK_SOCKET'

/** The variable that contains the token. Every question must have this token. */
export const TOKEN_VARIABLE = 'AGENT_TASK_SOCKET_TOKEN'

const requestSchema = lazily(() =>
  z.object({ token: z.string(), message: z.unknown(), schema: z.unknown().optional() }),
)

export interface QuestionSocket {
  readonly env: Readonly<Record<string, string>>
  close(): void
}

/** Opens the socket of a run. Rejects if it cannot be opened. */
export async function openQuestionSocket(ask: RunContext['ask']): Promise<QuestionSocket> {
  const { mkdtempSync, rmSync } = nodeBuiltin('node:fs')
  // The folder has mode 0700, so that only this user can enter it.
  const folder = mkdtempSync(nodeBuiltin('node:path').join(nodeBuiltin('node:os').tmpdir(), 'agent-task-'))
  const token = globalThis.crypto.randomUUID()
  const sockets = new Set<Socket>()
  const server = nodeBuiltin('node:net').createServer((socket) => {
    if (sockets.size >= MAX_CONNECTIONS) {
      // The connection may already be closed.
      socket.on('error', () => undefined)
      socket.end(lineOf(failure('TOO_MANY_QUESTIONS', `A run can have at most ${MAX_CONNECTIONS} open questions.`)))
      return
    }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    serve(socket, token, ask)
  })
  const close = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
    rmSync(folder, { recursive: true, force: true })
  }
  const path = `${folder}/questions`
  try {
    checkLength(path)
    await listenOn(server, path)
  } catch (error) {
    close()
    throw error
  }
  return { env: { [SOCKET_VARIABLE]: path, [TOKEN_VARIABLE]: token }, close }
}

/** Node truncates a path that is too long, without an error. The socket would then be in another folder, which other users may enter. */
function checkLength(path: string): void {
  const { length } = new TextEncoder().encode(path)
  if (length <= MAX_PATH_BYTES) return
  throw new AgentTasksError(
    'SOCKET_PATH_TOO_LONG',
    `The socket for questions would be ${path}: ${length} bytes, expected at most ${MAX_PATH_BYTES}. Set TMPDIR to a folder with a shorter path.`,
  )
}

function serve(socket: Socket, token: string, ask: RunContext['ask']): void {
  const gone = new AbortController()
  let text = ''
  let isRead = false
  const reply = (value: object): void => {
    isRead = true
    text = ''
    if (!gone.signal.aborted) socket.end(lineOf(value))
  }
  socket.setEncoding('utf8')
  socket.on('error', () => undefined)
  socket.once('close', () => gone.abort())
  socket.on('data', (chunk: string) => {
    if (isRead) return
    text += chunk
    const end = text.indexOf('\n')
    if (end === -1 ? text.length > MAX_LINE_CHARS : end > MAX_LINE_CHARS) {
      reply(failure('LINE_TOO_LONG', `The line of a question can have at most ${MAX_LINE_CHARS} characters.`))
    } else if (end !== -1) {
      isRead = true
      void answerTo(text.slice(0, end), token, (question) => ask(question, { signal: gone.signal })).then(reply)
      text = ''
    }
  })
}

/** Answers one line. Never rejects. */
async function answerTo(
  line: string,
  token: string,
  ask: (question: TaskQuestionInput) => Promise<object>,
): Promise<object> {
  try {
    const parsed = requestSchema().safeParse(JSON.parse(line))
    if (!parsed.success) return failure('INVALID_INPUT', 'Expected a line of JSON: { token, message, schema? }.')
    const { token: given, message, schema } = parsed.data
    if (given !== token) {
      return failure('UNAUTHORIZED', `The token of the question is wrong: it must be the value of ${TOKEN_VARIABLE}.`)
    }
    // `ask` validates the message and the schema.
    return await ask((schema === undefined ? { message } : { message, schema }) as TaskQuestionInput)
  } catch (error) {
    const code = error instanceof AgentTasksError ? error.code : 'INVALID_INPUT'
    return failure(code, describeFailure(error))
  }
}

const failure = (code: string, message: string): object => ({ error: { code, message } })

const lineOf = (value: object): string => `${JSON.stringify(value)}\n`
