/** Finds the processes of a command that a test has marked, in Linux's `/proc`. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'

/** The ids of the processes of `endlessCommand`. The prompt with the mark is also an argument of the agent. */
export function endless(mark: string): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      return /(^|\/)tail$/.test(program) && args.includes(mark)
    } catch {
      return false
    }
  })
}

/** A command that runs until it is ended, and that `endless` finds. */
export const endlessCommand = (mark: string): string => `tail -f /dev/null ${mark}`

/** Waits until a condition holds. Returns the time that this took, in ms. */
export async function until(condition: () => boolean, what: string, limitMs = 120_000): Promise<number> {
  const startedAt = Date.now()
  while (!condition()) {
    if (Date.now() - startedAt > limitMs) throw new Error(`after ${limitMs} ms: not ${what}`)
    await wait(20)
  }
  return Date.now() - startedAt
}
