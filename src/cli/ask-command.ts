/** `agent-tasks ask`: asks a question from inside a program that a task runs, and prints the answer. */
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import type { Command } from 'commander'
import { z } from 'zod'
import { withoutByteOrderMark } from '../data/byte-order-mark.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { parseInput } from '../protocol/parse.js'
import { SOCKET_VARIABLE, TOKEN_VARIABLE } from '../runners/question-socket.js'
import { EXIT } from './exit-codes.js'
import { CommandEnd } from './failures.js'
import { readInteger } from './numbers.js'
import { createTerminal, type ProgramIO } from './terminal.js'

interface AskOptions {
  readonly schema?: string
  readonly choices?: string
  readonly timeoutSeconds?: string
  readonly json?: boolean
}

/** The maximum length of an answer, in characters (1 MiB). */
const MAX_ANSWER_CHARS = 1024 * 1024

const replySchema = z.union([
  z.object({ error: z.object({ code: z.string(), message: z.string() }) }),
  z.object({
    action: z.enum(['accept', 'decline', 'cancel']),
    content: z.record(z.string(), z.unknown()).optional(),
  }),
])

type Reply = z.output<typeof replySchema>

export function addAskCommand(program: Command, io: ProgramIO): void {
  program
    .command('ask')
    .description('ask the owner of the task that runs this program, and print the answer')
    .argument('<question>', 'the question, in words')
    .option('--schema <file>', 'the JSON Schema of the answer: an object of strings, numbers, booleans or enums')
    .option('--choices <list>', 'the possible answers, with commas between them')
    .option(
      '--timeout-seconds <n>',
      'withdraw the question after this time (default: wait as long as the task may run)',
    )
    .option('--json', 'print the answer as JSON: { action, content }')
    .addHelpText(
      'after',
      `
Use it in a program that a task runs with questions allowed, which sets ${SOCKET_VARIABLE}. An answer with one field is printed as text, any
other as JSON. Exit code: 0 answered, 7 declined, 8 no answer (the time limit has passed, or the task has ended), 2 invalid input,
3 the host has ended, 4 refused.

Examples:
  $ agent-tasks ask "Which branch?"
  $ agent-tasks ask "Deploy?" --choices yes,no --timeout-seconds 600`,
    )
    .action((question: string, options: AskOptions) => ask(question, options, io))
}

async function ask(message: string, options: AskOptions, io: ProgramIO): Promise<void> {
  const { [SOCKET_VARIABLE]: path, [TOKEN_VARIABLE]: token } = io.env
  if (path === undefined || path === '') {
    const advice =
      'run this in a program of a task, and set "asks": true for its subagent (processRunner: questions: true)'
    throw new AgentTasksError('INVALID_INPUT', `${SOCKET_VARIABLE} is not set: ${advice}.`)
  }
  const seconds = options.timeoutSeconds
  const timeoutMs = seconds === undefined ? undefined : readInteger('--timeout-seconds', seconds, 1, 2_000_000) * 1000
  const schema = await schemaOf(options)
  const line = JSON.stringify({ token, message, ...omitUndefined({ schema }) })
  const terminal = createTerminal(io, 'stderr')
  const reply = await exchange(path, line, timeoutMs)
  if (reply === 'timeout') {
    terminal.say(`The question was withdrawn, because there was no answer within ${seconds ?? ''} s.`)
    throw new CommandEnd(EXIT.unanswered)
  }
  if (reply === 'gone') {
    terminal.say('agent-tasks: The host of the task has ended, so there will be no answer.')
    throw new CommandEnd(EXIT.connection)
  }
  if ('error' in reply) {
    terminal.say(`agent-tasks: ${reply.error.message}`)
    throw new CommandEnd(exitCodeOf(reply.error.code))
  }
  if (options.json === true) terminal.printJson(reply)
  if (reply.action !== 'accept') {
    terminal.say('The question was declined.')
    throw new CommandEnd(EXIT.declined)
  }
  if (options.json !== true) terminal.printResult(textOf(reply.content ?? {}))
}

function exitCodeOf(code: string): typeof EXIT.unanswered | typeof EXIT.usage | typeof EXIT.refused {
  if (code === 'QUESTION_WITHDRAWN') return EXIT.unanswered
  return code === 'INVALID_INPUT' || code === 'LINE_TOO_LONG' ? EXIT.usage : EXIT.refused
}

async function schemaOf({ schema, choices }: AskOptions): Promise<unknown> {
  if (schema !== undefined && choices !== undefined) {
    throw new InvalidInputError('--choices', choices, 'no --schema beside it')
  }
  if (choices !== undefined) {
    const list = choices.split(',').map((choice) => choice.trim())
    if (list.includes('')) throw new InvalidInputError('--choices', choices, 'words with commas between them')
    return { type: 'object', properties: { answer: { type: 'string', enum: list } }, required: ['answer'] }
  }
  if (schema === undefined) return undefined
  try {
    return JSON.parse(withoutByteOrderMark(await readFile(schema, 'utf8'))) as unknown
  } catch (error) {
    throw new InvalidInputError('--schema', schema, `a file with JSON (${(error as Error).message})`)
  }
}

/** Sends the question as one line and reads the reply. Closing the connection withdraws the question. */
function exchange(path: string, line: string, timeoutMs: number | undefined): Promise<Reply | 'timeout' | 'gone'> {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    let text = ''
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => end(() => resolve('timeout')), timeoutMs)
    const end = (settle: () => void): void => {
      clearTimeout(timer)
      socket.destroy()
      settle()
    }
    socket.setEncoding('utf8')
    socket.once('connect', () => socket.write(`${line}\n`))
    socket.on('data', (chunk: string) => {
      text += chunk
      if (!text.includes('\n') && text.length < MAX_ANSWER_CHARS) return
      end(() => {
        try {
          resolve(parseInput(replySchema, JSON.parse(text) as unknown, 'answer'))
        } catch (error) {
          reject(error instanceof AgentTasksError ? error : new InvalidInputError('answer', text, 'a line of JSON'))
        }
      })
    })
    const lost = (): void => end(() => resolve('gone'))
    socket.once('error', lost)
    socket.once('close', lost)
  })
}

function textOf(content: Readonly<Record<string, unknown>>): string {
  const values = Object.values(content)
  const [only] = values
  if (values.length !== 1) return JSON.stringify(content)
  return typeof only === 'string' ? only : JSON.stringify(only)
}
