/** What is kept of the output of survivors that print more than that, and how much is said to be left out: real programs. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, processRunner, type ProcessRunnerOptions } from '../../../src/index.js'
import { sqliteStore } from '../../../src/store/index.js'
import { leftProgram } from '../../support/left-program.js'

const KEPT = 1024

let file: string

beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-output-'))
  file = join(folder, 'tasks.db')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

/** Follows what was left to its end, as the next host. */
async function followed(options: Partial<ProcessRunnerOptions> = {}) {
  const runner = processRunner({ command: 'true', survivesHost: true, maxOutputBytes: KEPT, ...options })
  const manager = new AsyncTaskManager({
    store: sqliteStore(file),
    findRunner: () => runner,
    onError: () => undefined,
    outputBytes: 4 * KEPT,
  })
  onTestFinished(() => manager.dispose())
  expect(await manager.recovered).toMatchObject({ adopted: ['a'] })
  const { settled } = await manager.waitFor(['a'])
  return { end: settled[0], output: manager.readOutput('a', { cursor: 0 })?.text ?? '' }
}

/** A program that prints digits, so that each place can be told from those around it. */
const digits = (bytes: number): string => Array.from({ length: bytes }, (_, at) => String(at % 10)).join('')
const print = (bytes: number): string => `i=0; yes 0123456789 | tr -d '\\n' | head -c ${bytes}`

describe('a survivor that prints more than is kept', () => {
  it.each([KEPT, KEPT + 1, 2 * KEPT - 1, 2 * KEPT, 2 * KEPT + 1, 70_000, 200_000, 3_000_001])(
    'K8: says how much is left out when it was found again (%d bytes)',
    async (bytes) => {
      const { ended } = await leftProgram(file, print(bytes), { keptBytes: KEPT })
      await ended
      const { end, output } = await followed()
      const all = digits(bytes)
      const missing = bytes - KEPT
      const note = missing === 0 ? '' : `[${missing} bytes are left out here]\n`
      expect(end).toMatchObject({ status: 'completed', output: { final_message: `${note}${all.slice(-KEPT)}` } })
      const gap = bytes - 2 * KEPT
      const tail = all.slice(-KEPT)
      expect(output).toBe(gap <= 0 ? all : `${all.slice(0, KEPT)}\n[${gap} bytes are left out here]\n${tail}`)
    },
  )

  it('K8: says so in the same way when the host that started it follows it', async () => {
    const manager = new AsyncTaskManager({ store: sqliteStore(file), onError: () => undefined })
    onTestFinished(() => manager.dispose())
    const script = `${print(500_000)}; ${print(3_000)} >&2`
    const run = processRunner({ command: 'sh', args: ['-c', script], survivesHost: true, maxOutputBytes: 1000 })
    manager.launch({ id: 'a', subagentName: 'program', goalPrompt: 'goal' }, run)
    const { settled } = await manager.waitFor(['a'])
    expect(settled[0]?.output?.final_message).toBe(`[499000 bytes are left out here]\n${digits(500_000).slice(-1000)}`)
    const output = manager.readOutput('a', { cursor: 0 })?.text
    // The files keep whole blocks of 512 bytes at the beginning.
    expect(output).toContain(`[${500_000 - 1024 - 1000} bytes are left out here]`)
    expect(output).toContain(`[${3_000 - 1024 - 1000} bytes are left out here]`)
  })

  it.each([
    ['kept less', 512, 300_000 - 512],
    ['kept more', 4 * KEPT, 300_000 - KEPT],
  ])('K8: says so when the host that started it %s', async (_what, keptBytes, missing) => {
    const { ended } = await leftProgram(file, print(300_000), { keptBytes })
    await ended
    const kept = digits(300_000).slice(-Math.min(keptBytes, KEPT))
    expect((await followed()).end?.output?.final_message).toBe(`[${missing} bytes are left out here]\n${kept}`)
  })

  it.each(['json', () => ({ final_message: 'parsed' })] as const)(
    'K8: fails when all of its output is needed (%s), also when its beginning just fits',
    async (parse) => {
      const { ended } = await leftProgram(file, print(KEPT + 1), { keptBytes: KEPT })
      await ended
      const { end } = await followed({ parse })
      expect(end).toMatchObject({ status: 'failed', errorCode: 'PROCESS_OUTPUT' })
      expect(end?.error).toContain('it printed more than maxOutputBytes')
    },
  )

  it.each([
    '',
    'x\n',
    '1024\n',
    '1024\n-5\n',
    `1024\n${'9'.repeat(15)}\n`,
    `1024\n${'9'.repeat(60)}\n`,
    '0\n0\n',
    '5\n3\n',
  ])('ends in the same time when it has written %j over the sizes of its output', async (text) => {
    const { ended, runFolder } = await leftProgram(file, print(300_000), { keptBytes: KEPT })
    await ended
    writeFileSync(join(runFolder, 'stdout.size'), text)
    const { end } = await followed()
    expect(end?.status).toBe('completed')
    expect(end?.output?.final_message?.length).toBeLessThan(3 * KEPT)
  })
})
