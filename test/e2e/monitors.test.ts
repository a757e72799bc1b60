/** Monitors of a real file that another process writes, rotates and truncates, and a flood: F17. */
import { spawn } from 'node:child_process'
import { appendFileSync, mkdtempSync, readdirSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from '../../src/index.js'
import { until } from '../support/lifelines.js'

/** Writes `error <n>` between other lines, and rotates or truncates the file; waits so long after that that a monitor has looked at it. */
const writer = `
  const { appendFileSync, renameSync, truncateSync, writeFileSync } = require('node:fs')
  const [file, how] = process.argv.slice(1)
  const sleep = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
  for (let round = 0; round < 6; round += 1) {
    for (let n = 0; n < 20; n += 1) {
      appendFileSync(file, 'fine\\n'.repeat(2000) + 'error ' + (round * 20 + n) + '\\n')
      sleep(10)
    }
    if (how === 'rotate') {
      renameSync(file, file + '.' + round)
      appendFileSync(file + '.' + round, 'error late ' + round + '\\n')
      writeFileSync(file, '')
    } else {
      sleep(1500)
      truncateSync(file)
    }
    if (how === 'rotate') sleep(600)
  }
  appendFileSync(file, 'the end\\n')
`

function setUp() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'monitored-')))
  const file = join(folder, 'app.log')
  writeFileSync(file, '')
  const manager = new AsyncTaskManager({ monitors: { files: [folder] } })
  onTestFinished(async () => {
    await manager.dispose()
    rmSync(folder, { recursive: true, force: true })
  })
  const notes = () => manager.getPendingNotifications().map(({ output }) => String(output?.final_message))
  const open = () =>
    readdirSync('/proc/self/fd').filter((descriptor) => {
      try {
        return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(folder)
      } catch {
        return false
      }
    }).length
  return { file, manager, notes, open }
}

/** How many lines were shown or counted. */
const countOf = (notes: readonly string[]): number =>
  notes
    .flatMap((text) =>
      Array.from(text.matchAll(/(\d+) (?:matching line|more that were)/g), ([, count]) => Number(count)),
    )
    .reduce((sum, count) => sum + count, 0)

describe('a monitor of a file', () => {
  it.each(['rotate', 'truncate'])(
    'F17: loses no line of a program that writes to it and does this: %s',
    async (how) => {
      const { file, manager, notes, open } = setUp()
      manager.monitor({ file }, { match: { regex: '^(error .*|the end)$' }, idleSeconds: 4 })
      const child = spawn(process.execPath, ['-e', writer, file, how], { stdio: 'ignore' })
      onTestFinished(() => void child.kill())
      await until(() => manager.monitors().length === 0)
      expect(notes().at(-1)).toContain('nothing was written for 4 s')
      expect(countOf(notes())).toBe(6 * 20 + (how === 'rotate' ? 6 : 0) + 1)
      expect(open()).toBe(0)
    },
  )

  it('F17: holds little of a flood of 100,000 lines, and says how many there were', async () => {
    const { file, manager, notes } = setUp()
    manager.monitor({ file }, { match: 'error', idleSeconds: 2 })
    const line = `error ${'x'.repeat(193)}\n`
    global.gc?.()
    const before = process.memoryUsage()
    let most = 0
    const sample = setInterval(() => (most = Math.max(most, process.memoryUsage().arrayBuffers)), 20)
    onTestFinished(() => clearInterval(sample))
    for (let part = 0; part < 100; part += 1) appendFileSync(file, line.repeat(1000))
    await until(() => manager.monitors().length === 0)
    expect(countOf(notes())).toBe(100_000)
    expect(notes().every((text) => Buffer.byteLength(text) <= 2048)).toBe(true)
    expect(notes().length).toBeLessThan(20)
    expect(most - before.arrayBuffers).toBeLessThan(32 * 1024 * 1024)
    global.gc?.()
    expect(process.memoryUsage().heapUsed - before.heapUsed).toBeLessThan(64 * 1024 * 1024)
  })
})
