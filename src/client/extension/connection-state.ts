/** The state of the connection to the server, and what the person can do after an error. */
import { z } from 'zod'
import { AgentTasksError } from '../../errors.js'
import type { Settings } from './settings.js'

const problemSchema = z.object({
  code: z.string(),
  /** What happened. */
  what: z.string(),
  /** What the person can do. */
  advice: z.string(),
  /** Whether only the person can solve the problem. If so, the extension tries again only at the next alarm, which comes once a minute. */
  isLasting: z.boolean(),
})

/** Why there is no connection. */
export type Problem = z.output<typeof problemSchema>

const connectionStateSchema = z.object({
  /** `stopped`: the person ended the connection, or the server ended it with one of `ENDING_CODES`. */
  phase: z.enum(['stopped', 'connecting', 'connected']),
  problem: problemSchema.optional(),
})

export type ConnectionState = z.output<typeof connectionStateSchema>

export const STOPPED: ConnectionState = { phase: 'stopped' }

/** Reads the stored state. Returns `STOPPED` if there is none, or if it is invalid. */
export const readState = (stored: unknown): ConnectionState => connectionStateSchema.catch(STOPPED).parse(stored)

/**
 * The error codes with which a server ends a connection on purpose. After one of them, the extension connects again only when the person asks for it.
 */
export const ENDING_CODES: readonly string[] = ['TAKEN_OVER', 'INSTANCE_DISCONNECTED']

export function problemOf(error: unknown, { url, token, name }: Settings): Problem {
  const code = error instanceof AgentTasksError ? error.code : 'UNKNOWN'
  const message = error instanceof Error ? error.message : String(error)
  const [what, advice] = explain(code, message, { url, token, name })
  return { code, what, advice, isLasting: LASTING_CODES.includes(code) || /^HTTP_4/.test(code) }
}

const LASTING_CODES: readonly string[] = [
  'UNAUTHORIZED',
  'FOREIGN_ORIGIN',
  'FOREIGN_HOST',
  'BAD_ANSWER',
  ...ENDING_CODES,
]

function explain(
  code: string,
  message: string,
  { url, token, name }: Omit<Settings, 'isOn'>,
): [what: string, advice: string] {
  switch (code) {
    case 'CONNECTION_FAILED':
    case 'REQUEST_TIMEOUT':
      return [
        `No server answers at ${url}.`,
        'Start a server with: npx agent-tasks serve. If it runs already, compare the address with the one that it prints.',
      ]
    case 'CONNECTION_LOST':
      return [
        `The connection to ${url} was lost.`,
        'The extension connects again by itself. If the server was stopped, start it.',
      ]
    case 'UNAUTHORIZED':
      return token === ''
        ? ['The server asks for a token.', 'Enter one of the tokens that the server was started with (AUTH_TOKENS).']
        : [
            'The server does not accept this token.',
            'Compare the token with those that the server was started with (AUTH_TOKENS).',
          ]
    case 'FOREIGN_ORIGIN':
      return [
        'The server does not allow this extension.',
        'The server is an older version of agent-tasks. Update it, and load the extension of the same version.',
      ]
    case 'FOREIGN_HOST':
      return [
        `The server does not allow the name ${new URL(url).hostname}.`,
        'Use 127.0.0.1 if the server runs on this machine, or add the name to the ALLOWED_HOSTS of the server.',
      ]
    case 'INSTANCE_ID_IN_USE':
      return [
        `The server has another instance with the name ${name}.`,
        'If another browser uses this name, enter another name. Otherwise wait: the server keeps the name of a lost connection for 45 seconds.',
      ]
    case 'TAKEN_OVER':
      return [`Another program has connected as ${name}.`, 'Enter another name, then save.']
    case 'INSTANCE_DISCONNECTED':
      return ['The server has disconnected this browser.', 'Click "Connect now" to connect again.']
    case 'BAD_ANSWER':
      return notOurs(url)
    default:
      return /^HTTP_[45]/.test(code) ? notOurs(url) : [message, 'The extension tries again by itself.']
  }
}

const notOurs = (url: string): [string, string] => [
  `The program that answers at ${url} is not an agent-tasks server, or is another version of it.`,
  'Compare the address with the one that the server prints, and the version of the extension with that of npx agent-tasks --version.',
]
