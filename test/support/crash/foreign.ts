/**
 * Processes that do not belong to the hosts. The stored files of the hosts name their pids, as if the system had given the pid of a dead program to
 * another process. A host must not touch such a process.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from 'agent-tasks/store'
import { identityOf } from '../../../src/system/process-identity.js'
import { crashStore, fileIn, isOnServer } from './crash-store.js'
import type { StoredTask } from '../../../src/store/store.js'

/** A process that leads its own process group. */
export interface Foreigner {
  readonly isAlive: () => boolean
  readonly end: () => void
  /** Stores running tasks whose programs have the pid of this process. Call it while no host runs. Returns the ids of the tasks. */
  readonly plant: (folder: string) => Promise<readonly string[]>
}

export function startForeigner(): Foreigner {
  const child = spawn('sleep', ['3600'], { stdio: 'ignore', detached: true })
  const { pid = 0 } = child
  return {
    isAlive: () => child.exitCode === null && child.signalCode === null,
    end: () => child.kill('SIGKILL'),
    plant: async (folder) => {
      const identity = identityOf(pid)
      if (identity === undefined) return []
      const earlier = { ...identity, start: String(Number(identity.start) - 1) }
      const otherBoot = { ...identity, boot: randomUUID() }
      const store = await openStore(crashStore(folder))
      const guarded = [earlier, otherBoot].map((program) => {
        return task('program', { program: { identity: program, token: randomUUID() } })
      })
      const survivor = task('survivor', {})
      const planted = isOnServer ? guarded : [...guarded, survivor]
      await store.write(planted.map((put) => ({ table: 'tasks', put })))
      await store.close()
      if (isOnServer) return planted.map(({ id }) => id)
      const runFolder = `${fileIn(folder)}-runs/${survivor.id}-${survivor.launchedAt}-1`
      mkdirSync(runFolder, { recursive: true })
      writeFileSync(join(runFolder, 'identity'), `${pid}\n${earlier.start}\n${earlier.boot}\n${randomUUID()}\n`)
      return planted.map(({ id }) => id)
    },
  }
}

function task(subagentName: string, run: object): StoredTask {
  const row: Omit<StoredTask, 'record'> = {
    id: `planted-${randomUUID()}`,
    owner: 'main',
    status: 'running',
    delivery: 'none',
    attempt: 1,
    seq: 1,
    launchedAt: Date.now(),
    run: { graceMs: 0, params: {}, ...run },
  }
  const { run: _, ...fields } = row
  return { ...row, record: { ...fields, subagentName, goalPrompt: 'none' } }
}
