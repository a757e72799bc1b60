/** Hosts with a store that are killed, and what the next one finds. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readStore } from '../../src/store/index.js'
import { shiftedClock } from '../support/shifted-clock.js'

const program = fileURLToPath(new URL('../support/programs/durable-host.ts', import.meta.url))
type Line = Readonly<Record<string, unknown>>

interface Host {
  readonly child: ChildProcess
  /** Resolves when it has ended. */
  readonly ended: Promise<unknown>
  /** The next line that has this field. */
  line(field: string): Promise<Line>
  kill(): Promise<void>
}

function storeFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'tasks.db')
}

function startHost(file: string, action: string, script: string, env: NodeJS.ProcessEnv = {}): Host {
  const args = ['--import', 'tsx', program, file, action, script]
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env, STORE_TEST: file },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const ended = once(child, 'exit')
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  onTestFinished(kill)
  return {
    child,
    ended,
    kill,
    line: async (field) => {
      for (;;) {
        const next = await lines.next()
        if (next.done === true) throw new Error(`the host ended before it said ${field}`)
        const line = JSON.parse(next.value) as Line
        if (field in line) return line
      }
    },
  }
}

/** The processes that a host of this test has started, besides hosts. */
function programsOf(file: string): number {
  return readdirSync('/proc').filter((pid) => {
    try {
      const isOurs = readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`STORE_TEST=${file}\0`)
      return isOurs && !readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('durable-host')
    } catch {
      return false
    }
  }).length
}

const gone = async (file: string): Promise<void> => {
  while (programsOf(file) > 0) await new Promise((resolve) => setTimeout(resolve, 20))
}

it('K8: a program that survives its host is followed by the next one, with all its output', async () => {
  const file = storeFile()
  const go = join(file, '..', 'go')
  const script = `echo begin; while [ ! -e '${go}' ]; do sleep 0.05; done; echo end`
  const first = startHost(file, 'launch', script)
  await first.line('text')
  await first.kill()
  expect(readStore(file).tasks).toMatchObject([{ id: 'a', status: 'running' }])
  const second = startHost(file, 'wait', script)
  expect(await second.line('recovered')).toEqual({
    recovered: { adopted: ['a'], queued: [], retried: [], interrupted: [], uncertain: [] },
  })
  spawn('touch', [go])
  expect(await second.line('settled')).toEqual({
    settled: [{ status: 'completed', output: { final_message: 'begin\nend' } }],
  })
  await second.ended
  await gone(file)
  expect(existsSync(`${file}-runs`) ? readdirSync(`${file}-runs`) : []).toEqual([])
})

it('K8: a program that ended while there was no host completes its task in the next one', async () => {
  const file = storeFile()
  const first = startHost(file, 'launch', 'echo begin; sleep 0.2; echo end')
  await first.line('text')
  await first.kill()
  await gone(file)
  const second = startHost(file, 'wait', 'unused')
  expect(await second.line('settled')).toEqual({
    settled: [{ status: 'completed', output: { final_message: 'begin\nend' } }],
  })
})

it.runIf(process.platform === 'linux')(
  'K8: a survivor keeps its time when the clock of the machine is set on by an hour while no host is there',
  async () => {
    const file = storeFile()
    const go = join(file, '..', 'go')
    const script = `echo begin; while [ ! -e '${go}' ]; do sleep 0.05; done; echo end`
    const first = startHost(file, 'launch', script)
    await first.line('text')
    await first.kill()
    const second = startHost(file, 'wait', script, shiftedClock(3_600_000))
    expect(await second.line('recovered')).toMatchObject({ recovered: { adopted: ['a'] } })
    spawn('touch', [go])
    expect(await second.line('settled')).toMatchObject({ settled: [{ status: 'completed' }] })
    await second.ended
  },
)

it.each([
  ['ends at the signal', 'echo begin; sleep 60 & sleep 60'],
  ['ignores the signal', "trap '' TERM; echo begin; while :; do sleep 0.05; done"],
])(
  'K8: a survivor that %s is ended at its deadline although no host returns, and has timed out',
  async (_what, script) => {
    const file = storeFile()
    const limits = { STORE_TEST_TIMEOUT: '1000', STORE_TEST_GRACE: '1000' }
    const first = startHost(file, 'launch', script, limits)
    await first.line('text')
    await first.kill()
    // Nobody follows it.
    await gone(file)
    const second = startHost(file, 'wait', script, limits)
    expect(await second.line('recovered')).toMatchObject({ recovered: { adopted: ['a'] } })
    const error = expect.stringMatching(/^Task timed out: .* limit of 1 s\. .* was aborted/) as string
    expect(await second.line('settled')).toMatchObject({ settled: [{ status: 'failed', error }] })
    await second.ended
  },
)

it('K8: a survivor that ends in time leaves no timer of its deadline', async () => {
  const file = storeFile()
  const first = startHost(file, 'launch', 'echo begin; sleep 0.1; echo end')
  await first.line('text')
  await first.kill()
  await gone(file)
  const second = startHost(file, 'wait', 'unused')
  expect(await second.line('settled')).toMatchObject({ settled: [{ status: 'completed' }] })
})

it('K8: a survivor is cancelled by the next host', async () => {
  const file = storeFile()
  const first = startHost(file, 'launch', 'echo begin; sleep 60 & sleep 60')
  await first.line('text')
  await first.kill()
  const second = startHost(file, 'cancel', 'unused')
  expect(await second.line('settled')).toMatchObject({ settled: [{ status: 'cancelled' }] })
  await second.ended
  await gone(file)
})

it('K8: a program that does not survive ends with its host, whatever kills the host', async () => {
  const file = storeFile()
  const first = startHost(file, 'launch-guarded', "trap '' TERM HUP PIPE; echo begin; sleep 60 & sleep 60")
  await first.line('text')
  expect(programsOf(file)).toBeGreaterThan(0)
  await first.kill()
  await gone(file)
  const second = startHost(file, 'wait', 'unused')
  expect(await second.line('settled')).toMatchObject({ settled: [{ status: 'failed' }] })
})

it('K9: a second host gets the pid of the first, and the store when that has been killed', async () => {
  const file = storeFile()
  const first = startHost(file, 'launch', 'echo begin; sleep 60')
  await first.line('text')
  const second = startHost(file, 'wait', 'unused')
  expect(await second.line('refused')).toEqual({ refused: first.child.pid })
  await first.kill()
  const third = startHost(file, 'cancel', 'unused')
  expect(await third.line('recovered')).toMatchObject({ recovered: { adopted: ['a'] } })
  await third.ended
  await gone(file)
})

describe('a host that cannot say what its agent has received', () => {
  const host = fileURLToPath(new URL('../support/programs/delivering-host.ts', import.meta.url))

  /** One life: what it said, and how it ended. */
  function live(file: string, ...actions: string[]): { readonly said: Line[]; readonly end: string | number | null } {
    const { stdout, status, signal } = spawnSync(process.execPath, ['--import', 'tsx', host, file, ...actions], {
      encoding: 'utf8',
    })
    const said = stdout.split('\n').filter(Boolean)
    return { said: said.map((line) => JSON.parse(line) as Line), end: signal ?? status }
  }
  const delivered = (isRepeat: boolean): Line => ({
    delivered: [expect.stringMatching(/^shout-/) as string],
    isRepeat,
    isMarked: isRepeat,
  })

  it('K5: gets nothing again after a clean end, three times in a row', () => {
    const file = storeFile()
    expect(live(file)).toEqual({ said: [{ uncertain: 0 }, delivered(false)], end: 0 })
    for (let start = 0; start < 3; start += 1) {
      expect(live(file, 'resume')).toEqual({ said: [{ uncertain: 0 }], end: 0 })
    }
  })

  it('K5: gets a result again once, marked, after it was killed, and not again when it has accepted the repeat', () => {
    const file = storeFile()
    expect(live(file, 'die')).toEqual({ said: [{ uncertain: 0 }, delivered(false)], end: 'SIGKILL' })
    const { said, end } = live(file, 'resume', 'die')
    expect(end).toBe('SIGKILL')
    expect(said).toHaveLength(2)
    expect(said).toEqual(expect.arrayContaining([{ uncertain: 1 }, delivered(true)]))
    expect(live(file, 'resume')).toEqual({ said: [{ uncertain: 0 }], end: 0 })
  })
})
