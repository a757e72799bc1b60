/** The output of a command: text or JSON, with colour only on a terminal. */
import { Chalk, type ChalkInstance } from 'chalk'
import { createLogUpdate } from 'log-update'

/** An output stream. */
export interface Output {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

/** What the program uses of its process. */
export interface ProgramIO {
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads standard input to its end. */
  readonly readStdin: () => Promise<string>
}

export interface Terminal {
  /** Prints a line of the result to standard output. */
  readonly print: (line: string) => void
  /** Prints a value of the result as a line of JSON. */
  readonly printJson: (value: unknown) => void
  /** Prints a message to standard error. */
  readonly say: (line: string) => void
  readonly colours: ChalkInstance
  /** Lines that can be redrawn; undefined when the stream is not a terminal. */
  readonly live: LiveLines | undefined
}

/** A part of the screen that is redrawn. */
export interface LiveLines {
  draw(lines: readonly string[]): void
  /** Stops redrawing; the last lines stay. */
  done(): void
}

/** @param liveOn the stream of the lines that are redrawn: stderr for progress, stdout when they are the result */
export function createTerminal({ stdout, stderr, env }: ProgramIO, liveOn: 'stdout' | 'stderr'): Terminal {
  const stream = liveOn === 'stdout' ? stdout : stderr
  return {
    print: (line) => void stdout.write(`${line}\n`),
    printJson: (value) => void stdout.write(`${JSON.stringify(value)}\n`),
    say: (line) => void stderr.write(`${line}\n`),
    colours: new Chalk({ level: hasColour(stream, env) ? 1 : 0 }),
    live: stream.isTTY === true ? createLive(stream) : undefined,
  }
}

/** `NO_COLOR` (https://no-color.org) and `FORCE_COLOR` (https://force-color.org) take precedence. */
function hasColour(stream: Output, env: ProgramIO['env']): boolean {
  const isSet = (name: string): boolean => env[name] !== undefined && env[name] !== ''
  if (isSet('NO_COLOR')) return false
  if (isSet('FORCE_COLOR')) return env['FORCE_COLOR'] !== '0'
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}

function createLive(stream: Output): LiveLines {
  // log-update only writes to the stream, and reads its size.
  // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment
  const update = createLogUpdate(stream as NodeJS.WriteStream)
  const fit = (line: string): string => line.slice(0, Math.max(10, (stream.columns ?? 80) - 1))
  return {
    draw: (lines) => update(lines.map(fit).join('\n')),
    done: () => update.done(),
  }
}
