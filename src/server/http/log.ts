/**
 * The log of a server. Headers, queries and message bodies are never logged, so a token is never logged either. An entry is always one line, because
 * control characters in an error message are escaped.
 */
import { escapeControls } from '../../data/control-characters.js'
import { describeFailure } from '../../protocol/outcomes.js'
import type { ServerConfig } from '../../protocol/server-config.js'

export type Log = (level: 'error' | 'warn' | 'info' | 'debug', line: string, error?: unknown) => void

const levels = ['silent', 'error', 'warn', 'info', 'debug'] as const

/** @param write called with each line at or above the level. Default: `console.error`, because stdout may be used for a protocol */
export function createLog(
  level: ServerConfig['logLevel'],
  write: (line: string) => void = (line) => console.error(line),
): Log {
  const threshold = levels.indexOf(level)
  return (lineLevel, line, error) => {
    if (levels.indexOf(lineLevel) > threshold) return
    write(
      escapeControls(`agent-tasks ${lineLevel}: ${line}${error === undefined ? '' : `: ${describeFailure(error)}`}`),
    )
  }
}
