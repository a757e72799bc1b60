/** The time that survivors have spent: real programs, in the process of the test, with hosts whose clocks on the wall were set. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/system/clock.js'
import { runTime } from '../../../src/engine/program-folder.js'
import { AsyncTaskManager, processRunner } from '../../../src/index.js'
import { ageOf, identityOf } from '../../../src/system/process-identity.js'
import { sqliteStore } from '../../../src/store/index.js'
import { leftProgram } from '../../support/left-program.js'

const HOUR = 3_600_000

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-time-'))
  file = join(folder, 'tasks.db')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

/** A minute's limit and a minute's budget are ahead of the program. */
const leaveProgram = (script: string) => leftProgram(file, script, { timeoutMs: 60_000, budget: { seconds: 60 } })

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
