/** Where a command writes, and how: text for people, JSON for programs, no colour where nobody sees it. */
import { Chalk, type ChalkInstance } from 'chalk'
import { createLogUpdate } from 'log-update'

/** A stream that a command writes to. */
export interface Output {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

/** What a command finds around it. */
export interface Surroundings {
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads all of standard input. */
  readonly readStdin: () => Promise<string>
}

export interface Terminal {
  /** A line of the result. */
  readonly print: (line: string) => void
  /** One value of the result, as one line of JSON. */
  readonly printJson: (value: unknown) => void
  /** A line beside the result. */
  readonly say: (line: string) => void
  readonly colours: ChalkInstance
  /** Lines that are drawn over; undefined where lines cannot be. */
  readonly live: LiveLines | undefined
}

/** A part of the screen that is drawn again and again. */
export interface LiveLines {
  draw(lines: readonly string[]): void
  /** Leaves what was drawn last. */
  done(): void
}

/**
 * @param liveOn which stream the lines that change go to: beside the result, or as the result
 */
export function createTerminal({ stdout, stderr, env }: Surroundings, liveOn: 'stdout' | 'stderr'): Terminal {
  const stream = liveOn === 'stdout' ? stdout : stderr
  return {
    print: (line) => void stdout.write(`${line}\n`),
    printJson: (value) => void stdout.write(`${JSON.stringify(value)}\n`),
    say: (line) => void stderr.write(`${line}\n`),
    colours: new Chalk({ level: hasColour(stream, env) ? 1 : 0 }),
    live: stream.isTTY === true ? createLive(stream) : undefined,
  }
}

/** `NO_COLOR` and `FORCE_COLOR` as https://no-color.org and https://force-color.org say. */
function hasColour(stream: Output, env: Surroundings['env']): boolean {
  const isSet = (name: string): boolean => env[name] !== undefined && env[name] !== ''
  if (isSet('NO_COLOR')) return false
  if (isSet('FORCE_COLOR')) return env['FORCE_COLOR'] !== '0'
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}

function createLive(stream: Output): LiveLines {
  // log-update only writes and asks for the width, which is what an Output can do.
  // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment
  const update = createLogUpdate(stream as NodeJS.WriteStream)
  const fit = (line: string): string => line.slice(0, Math.max(10, (stream.columns ?? 80) - 1))
  return {
    draw: (lines) => update(lines.map(fit).join('\n')),
    done: () => update.done(),
  }
}
