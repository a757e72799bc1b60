/** The time that survivors have spent: real programs, in the process of the test, with hosts whose clocks on the wall were set. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { folderName } from '../../../src/async-tasks/run-files.js'
import { systemClock } from '../../../src/clock.js'
import { runTime } from '../../../src/engine/program-folder.js'
import { reapProgram, type StartedProgram } from '../../../src/engine/reap.js'
import { AsyncTaskManager, processRunner } from '../../../src/index.js'
import { ageOf, identityOf } from '../../../src/process-identity.js'
import { startSurviving } from '../../../src/runners/surviving-program.js'
import { sqliteStore } from '../../../src/store/index.js'

const HOUR = 3_600_000

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-time-'))
  file = join(folder, 'tasks.db')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

const until = async (isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** Starts a program as a host does that dies at once, a minute's limit and a minute's budget ahead of it. */
async function leaveProgram(
  script: string,
): Promise<{ runFolder: string; program: StartedProgram; ended: Promise<unknown> }> {
  const launchedAt = Date.now()
  const runFolder = join(`${file}-runs`, folderName({ id: 'a', launchedAt }))
  mkdirSync(runFolder, { recursive: true })
  const start = { command: '/bin/sh', args: ['-c', script], cwd: undefined, env: process.env }
  const { child, program, release } = startSurviving(runFolder, start, 1000)
  if (program === undefined) throw new Error('it did not start')
  onTestFinished(() => void reapProgram(program))
  const ended = new Promise((resolve) => child.once('exit', resolve))
  release({ folder: runFolder, isResumed: false, key: undefined, startedAt: 0, saveProgram: () => undefined })
  const store = sqliteStore(file)
  store.open()
  const row = { id: 'a', owner: 'main', status: 'running', delivery: 'none', seq: 1, launchedAt } as const
  const record = { ...row, subagentName: 'program', goalPrompt: 'goal', timeoutMs: 60_000, budget: { seconds: 60 } }
  const run = { graceMs: 0, params: {}, program }
  store.write([{ table: 'tasks', put: { ...row, attempt: 1, deadlineAt: launchedAt + 60_000, record, run } }])
  store.close()
  await until(() => existsSync(join(runFolder, 'stdout')))
  return { runFolder, program, ended }
}

/** A host whose clock on the wall was set. */
async function hostAt(shiftMs: number): Promise<AsyncTaskManager> {
  const manager = new AsyncTaskManager({
    store: sqliteStore(file),
    clock: { ...systemClock, now: () => Date.now() + shiftMs },
    findRunner: () => processRunner({ command: 'true', survivesHost: true }),
    onError: () => undefined,
  })
  onTestFinished(() => manager.dispose())
  expect(await manager.recovered).toMatchObject({ adopted: ['a'] })
  return manager
}

describe.runIf(process.platform === 'linux')('the time that a survivor has spent', () => {
  it.each([HOUR, -HOUR])('K8: does not depend on the clock on the wall, which was set by %d ms', async (shift) => {
    const go = join(folder, 'go')
    await leaveProgram(`until [ -e '${go}' ]; do sleep 0.01; done; echo end`)
    const manager = await hostAt(shift)
    // The wall clock says that its limits have passed: they would end it at once.
    await new Promise((resolve) => setTimeout(resolve, 50))
    writeFileSync(go, '')
    const { settled } = await manager.waitFor(['a'])
    expect(settled).toMatchObject([{ status: 'completed', output: { final_message: 'end' } }])
    expect(manager.getTask('a')?.spent?.seconds).toBeLessThan(30)
    expect(manager.spent().seconds).toBeLessThan(30)
  })

  it('K8: ends with the program, however long no host was there to see it', async () => {
    const { runFolder, program, ended } = await leaveProgram('echo end')
    await ended
    const uptime = Number(readFileSync(join(runFolder, 'uptime'), 'utf8'))
    const { start } = program.identity
    // As if the system had been up for an hour longer.
    const earlier = { ...program, identity: { ...program.identity, start: String(Number(start) - HOUR / 10) } }
    writeFileSync(join(runFolder, 'uptime'), `${(uptime - HOUR / 1000).toFixed(2)}\n`)
    expect(ageOf(earlier.identity)).toBeGreaterThanOrEqual(HOUR)
    if (uptime > HOUR / 1000) expect(runTime(runFolder, earlier)).toBeLessThan(30_000)
    writeFileSync(join(runFolder, 'uptime'), `${uptime + HOUR}\n`)
    expect(runTime(runFolder, program)).toBeLessThan(30_000)
  })

  it.each(['', 'x', '-1.0\n', `${'9'.repeat(40)}.0\n`, '0.00\n', '1.00'])(
    'is that until now when its file says %j',
    async (text) => {
      const { runFolder, program, ended } = await leaveProgram('echo end')
      await ended
      writeFileSync(join(runFolder, 'uptime'), text)
      const ran = runTime(runFolder, program)
      expect(ran).toBeGreaterThanOrEqual(0)
      expect(ran).toBeLessThan(30_000)
    },
  )

  it('is unknown after another boot, and for what was no start', () => {
    const own = identityOf(process.pid)!
    expect(ageOf(own)).toBeGreaterThan(0)
    for (const wrong of [{ boot: 'another' }, { start: 'x' }, { start: '9'.repeat(20) }]) {
      expect(ageOf({ ...own, ...wrong })).toBeUndefined()
    }
  })
})
