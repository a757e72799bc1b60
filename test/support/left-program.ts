/** A real program that survives its host, and the store that the host left. It looks as if the host was killed after the program had begun. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { folderName } from '../../src/features/output/run-files.js'
import { leads, reapProgram, scanOf, type StartedProgram } from '../../src/engine/reap.js'
import type { RunDurability } from '../../src/engine/runner.js'
import { startSurviving } from '../../src/runners/surviving-program.js'
import { sqliteStore } from '../../src/store/index.js'
import type { StoredJson } from '../../src/store/store.js'

export interface LeftProgram {
  /** The folder with the files of the program. */
  readonly runFolder: string
  readonly program: StartedProgram
  /** Resolves when the program has ended. */
  readonly ended: Promise<unknown>
}

/** Whether processes of a program are running. Unlike `isLeft`, it is false while another program of the machine is being started. */
export const hasProcesses = (program: StartedProgram): boolean =>
  leads(program) || scanOf(program).look().found.length > 0

/** How a run of an earlier process was stored, for a test without a store. */
export const storedIn = (folder: string): RunDurability => ({
  folder,
  isResumed: false,
  key: undefined,
  startedAt: 0,
  saveProgram: () => Promise.resolve(),
})

/** Leaves the task `a` running in a store in a file. */
export async function leftProgram(
  file: string,
  script: string,
  {
    timeoutMs,
    keptBytes = 1000,
    ...record
  }: StoredJson & { readonly timeoutMs?: number; readonly keptBytes?: number } = {},
): Promise<LeftProgram> {
  const launchedAt = Date.now()
  const runFolder = join(`${file}-runs`, folderName({ id: 'a', launchedAt }))
  mkdirSync(runFolder, { recursive: true })
  const start = { command: '/bin/sh', args: ['-c', script], cwd: undefined, env: process.env }
  const { child, program, release } = startSurviving(runFolder, start, keptBytes)
  if (program === undefined) throw new Error('it did not start')
  onTestFinished(() => void reapProgram(program))
  const ended = new Promise((resolve) => child.once('exit', resolve))
  await release(storedIn(runFolder))
  const store = sqliteStore(file)
  store.open()
  const row = { id: 'a', owner: 'main', status: 'running', delivery: 'none', seq: 1, launchedAt } as const
  const limit = timeoutMs === undefined ? {} : { deadlineAt: launchedAt + timeoutMs }
  const stored = { ...row, ...record, ...(timeoutMs !== undefined && { timeoutMs }) }
  const put = { ...row, ...limit, attempt: 1, record: { ...stored, subagentName: 'program', goalPrompt: 'goal' } }
  await store.write([{ table: 'tasks', put: { ...put, run: { graceMs: 0, params: {}, program } } }])
  store.close()
  while (!existsSync(join(runFolder, 'stdout'))) await new Promise((resolve) => setTimeout(resolve, 5))
  return { runFolder, program, ended }
}
