/** A host that ends by a signal leaves no program behind. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openLifelines, type TreeProgram } from '../support/lifelines.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const script = fileURLToPath(new URL('../support/programs/disposing-host.ts', import.meta.url))

const stubborn: TreeProgram[] = [
  { name: 'first', ignoresSigterm: true },
  { name: 'second', ignoresSigterm: true },
  { name: 'third', ignoresSigterm: true, child: { name: 'child', ignoresSigterm: true, output: 'inherit' } },
]

/** A host with three programs under way that ignore SIGTERM, one of which has a child. It leads a process group, as from a terminal. */
async function startHost(options: { graceMs: number; limitMs?: number }) {
  const lifelines = await openLifelines()
  onTestFinished(lifelines.close)
  const spec = JSON.stringify([stubborn.map((program) => lifelines.argumentsOf(program)), options])
  const host = spawn(process.execPath, ['--import', 'tsx', script, spec], {
    cwd: root,
    detached: true,
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  onTestFinished(() => void host.kill('SIGKILL'))
  const exited = once(host, 'exit').then(([code, signal]) => (code ?? signal) as unknown)
  const names = ['first', 'second', 'third', 'child']
  const programs = await Promise.all(names.map((name) => lifelines.program(name)))
  return {
    host,
    exited,
    toGroup: (signal: NodeJS.Signals) => process.kill(-(host as Required<ChildProcess>).pid!, signal),
    heardSigterm: () => Promise.all(programs.map((program) => program.heard('SIGTERM'))),
    gone: () => Promise.all(programs.map((program) => program.gone)),
  }
}

const HOUR_MS = 3_600_000

describe('a host that ends by a signal', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('%s to it alone stops its programs, kills those that do not stop, and ends it', async (signal, code) => {
    const { host, exited, heardSigterm, gone } = await startHost({ graceMs: 100 })
    host.kill(signal)
    await heardSigterm()
    await gone()
    expect(await exited).toBe(code)
  })

  it('the Ctrl-C of a terminal, to its process group, does the same', async () => {
    const { exited, toGroup, heardSigterm, gone } = await startHost({ graceMs: 100 })
    toGroup('SIGINT')
    await heardSigterm()
    await gone()
    expect(await exited).toBe(130)
  })

  it('a second signal kills its programs at once', async () => {
    const { host, exited, heardSigterm, gone } = await startHost({ graceMs: HOUR_MS })
    host.kill('SIGINT')
    await heardSigterm()
    host.kill('SIGTERM')
    await gone()
    expect(await exited).toBe(143)
  })

  it('SIGTERM after the end of its input kills its programs at once', async () => {
    const { host, exited, heardSigterm, gone } = await startHost({ graceMs: HOUR_MS })
    host.stdin.end()
    await heardSigterm()
    host.kill('SIGTERM')
    await gone()
    expect(await exited).toBe(143)
  })

  it('the end of its input alone ends it with 0', async () => {
    const { host, exited, gone } = await startHost({ graceMs: 100 })
    host.stdin.end()
    await gone()
    expect(await exited).toBe(0)
  })

  it('its programs are killed at the time limit', async () => {
    const { host, exited, gone } = await startHost({ graceMs: HOUR_MS, limitMs: 100 })
    host.kill('SIGTERM')
    await gone()
    expect(await exited).toBe(1)
  })
})
