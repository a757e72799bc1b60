/** Programs that the benchmark runs to their end, and whose answer is JSON on standard output. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Runs a program of `subjects/` in a process of its own. */
export async function runProgram(name: string, args: readonly string[] = []): Promise<unknown> {
  const file = fileURLToPath(new URL(`subjects/${name}.js`, import.meta.url))
  const { stdout } = await run(process.execPath, ['--expose-gc', file, ...args], { maxBuffer: 2 ** 26 })
  return JSON.parse(stdout) as unknown
}
