/** What the server writes to standard error. No header, no query and no message body ever reaches it, so no token does. */
import { describeFailure } from '../protocol/outcomes.js'
import type { ServerConfig } from '../protocol/server-config.js'

/** Takes one line. */
export type Log = (level: 'error' | 'warn' | 'info' | 'debug', line: string, error?: unknown) => void

const levels = ['silent', 'error', 'warn', 'info', 'debug'] as const

/** @param write gets each line that the level lets through; default `console.error` */
export function createLog(
  level: ServerConfig['logLevel'],
  write: (line: string) => void = (line) => console.error(line),
): Log {
  const most = levels.indexOf(level)
  return (lineLevel, line, error) => {
    if (levels.indexOf(lineLevel) > most) return
    write(`agent-tasks ${lineLevel}: ${line}${error === undefined ? '' : `: ${describeFailure(error)}`}`)
  }
}
