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

  it('F22: the same signal again, a second later, kills its programs at once', async () => {
    const { host, exited, heardSigterm, gone } = await startHost({ graceMs: HOUR_MS })
    host.kill('SIGINT')
    await heardSigterm()
    const repeated = setInterval(() => host.kill('SIGINT'), 100)
    onTestFinished(() => clearInterval(repeated))
    await gone()
    expect(await exited).toBe(130)
  })

  it.each([
    // A busy process may hear of the end and the signal in either order.
    ['the end of its input, then SIGTERM', ['end', 'SIGTERM'], [0, 143]],
    ['SIGINT, then SIGTERM', ['SIGINT', 'SIGTERM'], [130]],
    ['SIGTERM, then the end of its input', ['SIGTERM', 'end'], [0, 143]],
  ] as const)('F22: %s are one request: its programs get their grace period', async (_, [first, then], codes) => {
    const { host, exited, heardSigterm, gone } = await startHost({ graceMs: 500 })
    const send = (what: 'end' | NodeJS.Signals): unknown => (what === 'end' ? host.stdin.end() : host.kill(what))
    send(first)
    send(then)
    await heardSigterm()
    await gone()
    expect(codes).toContain(await exited)
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

describe('a host whose module awaits the result of a task', () => {
  /** Ends the host with Ctrl-C once its task runs. */
  async function endHost(mode: string) {
    const waiting = fileURLToPath(new URL('../support/programs/awaiting-host.ts', import.meta.url))
    const host = spawn(process.execPath, ['--import', 'tsx', waiting, mode], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    onTestFinished(() => void host.kill('SIGKILL'))
    const said = { stdout: '', stderr: '' }
    host.stderr.setEncoding('utf8').on('data', (text: string) => (said.stderr += text))
    host.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (!said.stdout.includes('ready') && (said.stdout + text).includes('ready')) host.kill('SIGINT')
      said.stdout += text
    })
    const [code] = (await once(host, 'close')) as [number | null]
    return { code, ...said }
  }

  it.each(['await', 'wrap'])('exits with 130 and prints no error: %s', async (mode) => {
    expect(await endHost(mode)).toEqual({ code: 130, stdout: 'ready\n', stderr: '' })
  })

  it('prints an error of its own, and exits with 1', async () => {
    const { code, stderr } = await endHost('reject')
    expect(stderr).toMatch(/^Error: error of the host\n/)
    expect(stderr).not.toContain('TaskCancelledError')
    expect(code).toBe(1)
  })

  it('leaves an error of its own to its listener', async () => {
    const { code, stdout, stderr } = await endHost('listen')
    expect(stdout).toContain('heard: error of the host\n')
    expect([code, stderr]).toEqual([130, ''])
  })
})
