/**
 * Finds all processes that a program under test has started. A browser leaves the process group of its parent, and its crash handlers lose their parent.
 * So the processes are found by an environment variable and by their ancestors.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

export interface ProcessFamily {
  /** The environment variable for the program. */
  readonly env: Readonly<Record<string, string>>
  /** Returns the living processes, with pid and name. Remembers them, so that they are found later without their parent. */
  alive(): readonly Member[]
  /** Waits up to `ms` for the processes to exit. Returns those that are still alive. */
  survivors(ms: number): Promise<readonly Member[]>
}

export interface Member {
  readonly pid: number
  readonly name: string
}

interface Found extends Member {
  readonly parent: number
  /** Its start time in ticks. It identifies the process, because a pid can be reused. */
  readonly startTime: string
  readonly isMarked: boolean
}

const VARIABLE = 'AGENT_TASKS_TEST_FAMILY'

/** @param name a name that no other family has */
export function createProcessFamily(name: string): ProcessFamily {
  const seen = new Set<string>()
  const alive = (): readonly Member[] => {
    const found = readProcesses(`${VARIABLE}=${name}`)
    const isOurs = (one: Found): boolean => seen.has(keyOf(one)) || one.isMarked
    let grown: number
    do {
      grown = seen.size
      const parents = new Set<number>()
      for (const one of found) if (isOurs(one)) parents.add(one.pid)
      for (const one of found) if (isOurs(one) || parents.has(one.parent)) seen.add(keyOf(one))
    } while (seen.size > grown)
    return found.filter(isOurs).map((one) => ({ pid: one.pid, name: one.name }))
  }
  return {
    env: { [VARIABLE]: name },
    alive,
    survivors: async (ms) => {
      const end = performance.now() + ms
      while (alive().length > 0 && performance.now() < end) await delay(20)
      return alive()
    },
  }
}

const keyOf = ({ pid, startTime }: Found): string => `${pid} ${startTime}`

/** Returns all running processes, without zombies. */
function readProcesses(mark: string): Found[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      const [, name = '', rest = ''] = /\((.*)\) (.*)/s.exec(read(`/proc/${entry}/stat`)) ?? []
      const fields = rest.split(' ')
      if (name === '' || fields[0] === 'Z' || fields[0] === 'X') return []
      const isMarked = read(`/proc/${entry}/environ`).split('\0').includes(mark)
      return [{ pid: Number(entry), name, parent: Number(fields[1]), startTime: fields[19] ?? '', isMarked }]
    })
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // It has ended.
  }
}
