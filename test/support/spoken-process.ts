/** Runs a TypeScript program as a separate process that prints what it does. Each line of its output is JSON. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'

/** A line of its output. */
export type Spoken = Readonly<Record<string, unknown>>

/** A process that runs. */
export interface SpokenProcess {
  readonly pid: number
  /** All lines that the process has printed. */
  readonly said: readonly Spoken[]
  /** Returns what the process has written to stderr. */
  readonly errors: () => string
  /** Resolves with the first line that has this field and fits, now or earlier. Rejects when the process ends without such a line. */
  says(field: string, fits?: (line: Spoken) => boolean): Promise<Spoken>
  signal(signal: NodeJS.Signals): void
  /** Resolves with the exit code when the process has ended. */
  readonly ended: Promise<number | null>
}

/** Starts a program of `test/support/programs`. Kills it after the test. */
export function startSpoken(
  program: string,
  args: readonly (string | number)[],
  env: Record<string, string> = {},
): SpokenProcess {
  const path = fileURLToPath(new URL(`programs/${program}.ts`, import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', path, ...args.map(String)], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said: Spoken[] = []
  const listeners = new Set<() => void>()
  let errors = ''
  let isOver = false
  const changed = (): void => {
    for (const listener of [...listeners]) listener()
  }
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const output = createInterface({ input: child.stdout })
  output.on('line', (line) => {
    said.push(JSON.parse(line) as Spoken)
    changed()
  })
  const ended = Promise.all([once(child, 'exit'), once(output, 'close')]).then(([[code]]) => {
    isOver = true
    changed()
    return code as number | null
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return {
    pid: child.pid ?? 0,
    said,
    errors: () => errors,
    signal: (signal) => void child.kill(signal),
    ended,
    says: (field, fits = () => true) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = said.find((line) => field in line && fits(line))
          if (found === undefined && !isOver) return
          listeners.delete(look)
          if (found !== undefined) resolve(found)
          else reject(new Error(`${program} has ended without saying ${field}:\n${JSON.stringify(said)}\n${errors}`))
        }
        listeners.add(look)
        look()
      }),
  }
}
