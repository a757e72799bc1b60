/**
 * The output of a command: text or JSON, with colour only on a terminal. Control characters are removed here, because most texts come from servers,
 * tools and programs, which are not trusted.
 */
import { Chalk, type ChalkInstance } from 'chalk'
import { createLogUpdate } from 'log-update'
import { escapeControls, toLines, toOneLine } from '../data/control-characters.js'

/** An output stream. */
export interface Output {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
}

export interface ProgramIO {
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  readonly readStdin: () => Promise<string>
}

type Colour = 'green' | 'yellow' | 'red' | 'cyan' | 'dim'

/** A line: text, or a list of texts with and without a colour. */
export type Line = string | readonly (string | Coloured)[]

export interface Coloured {
  readonly text: string
  readonly colour: Colour
}

export interface Terminal {
  readonly print: (line: Line) => void
  readonly printLines: (text: string) => void
  /** Prints the text that a tool returned to standard output. Control characters are removed only if standard output is a terminal. */
  readonly printResult: (text: string) => void
  /** Prints a value of the result as a line of JSON. */
  readonly printJson: (value: unknown) => void
  readonly say: (line: string) => void
  /** Lines that can be redrawn; undefined if the stream is not a terminal. */
  readonly live: LiveLines | undefined
}

/** A part of the screen that is redrawn. */
export interface LiveLines {
  /** How many lines fit on the screen. */
  readonly rows: number
  draw(lines: readonly Line[]): void
  /** Stops redrawing. The last lines stay on the screen. */
  done(): void
}

/** @param liveOn the stream on which lines are redrawn: `stderr` for progress, `stdout` if the lines are the result */
export function createTerminal({ stdout, stderr, env }: ProgramIO, liveOn: 'stdout' | 'stderr'): Terminal {
  const stream = liveOn === 'stdout' ? stdout : stderr
  const chalk = new Chalk({ level: hasColour(stream, env) ? 1 : 0 })
  return {
    print: (line) => void stdout.write(`${render(line, chalk)}\n`),
    printLines: (text) => void stdout.write(`${toLines(text)}\n`),
    printResult: (text) => void stdout.write(`${stdout.isTTY === true ? toLines(text) : text}\n`),
    printJson: (value) => void stdout.write(`${toJsonLine(value)}\n`),
    say: (line) => void stderr.write(`${toOneLine(line)}\n`),
    live: stream.isTTY === true ? createLive(stream, chalk) : undefined,
  }
}

/** A value as one line of JSON. All control characters are escaped, because JSON.stringify escapes only some of them. */
export const toJsonLine = (value: unknown): string => escapeControls(JSON.stringify(value))

/** Whether a stream gets colour. `NO_COLOR` (https://no-color.org) and `FORCE_COLOR` (https://force-color.org) override the kind of stream. */
function hasColour(stream: Output, env: ProgramIO['env']): boolean {
  const isSet = (name: string): boolean => env[name] !== undefined && env[name] !== ''
  if (isSet('NO_COLOR')) return false
  if (isSet('FORCE_COLOR')) return env['FORCE_COLOR'] !== '0'
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}

/** @param most the maximum length of the line, in characters */
function render(line: Line, chalk: ChalkInstance, most = Infinity): string {
  let left = most
  return (typeof line === 'string' ? [line] : line)
    .map((part) => {
      const text = toOneLine(typeof part === 'string' ? part : part.text).slice(0, left)
      left -= text.length
      return typeof part === 'string' ? text : chalk[part.colour](text)
    })
    .join('')
}

function createLive(stream: Output, chalk: ChalkInstance): LiveLines {
  // log-update only writes to the stream, and reads its size.
  // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment
  const update = createLogUpdate(stream as NodeJS.WriteStream)
  return {
    get rows() {
      // The cursor needs one line below the last line.
      return Math.max(2, (stream.rows ?? 24) - 1)
    },
    draw: (lines) => {
      const most = Math.max(10, (stream.columns ?? 80) - 1)
      update(lines.map((line) => render(line, chalk, most)).join('\n'))
    },
    done: () => update.done(),
  }
}
