/** What the server says of itself: to standard error, as standard output belongs to the protocol. */
import { describeFailure } from '../protocol/outcomes.js'

/** Takes one line. */
export type Report = (level: 'error' | 'warn' | 'info', line: string, error?: unknown) => void

/** @param write gets each line; default `console.error` */
export function createReport(write: (line: string) => void = (line) => console.error(line)): Report {
  return (level, line, error) => {
    write(`agent-tasks ${level}: ${line}${error === undefined ? '' : `: ${describeFailure(error)}`}`)
  }
}
