/** How the processes of a run are found: with a table of processes that the test writes, and with real ones. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { hasToken, isToken, newRunToken, RUN_TOKEN } from '../../../src/engine/run-token.js'
import {
  lookUntilGone,
  systemProcesses,
  TokenScan,
  type ProcessReader,
  type RunMark,
} from '../../../src/engine/token-scan.js'
import type { ProcessStat } from '../../../src/system/process-stat.js'
import { waitFor } from '../../support/wait-for.js'

const TOKEN = '00000000-0000-4000-8000-000000000001'
const entry = `${RUN_TOKEN}=${TOKEN}`

describe('F22: the token of a run', () => {
  it.each([
    ['alone', entry, true],
    ['among other variables', `PATH=/bin\0${entry}\0HOME=/`, true],
    ['of a run inside the run', `A=b\0${entry}/${TOKEN}\0`, true],
    ['of another run that begins with it', `${entry}0\0`, false],
    ['as the end of the name of another variable', `X_${entry}\0`, false],
    ['in the value of another variable', `A=${entry}\0`, false],
    ['in a line of the value of another variable', `A=b\n${entry}\0`, false],
    ['of an outer run', `${RUN_TOKEN}=00000000\0`, false],
    ['nowhere', '', false],
  ])('is found %s: %j is %s', (_, environment, isFound) => {
    expect(hasToken(environment, TOKEN)).toBe(isFound)
  })

  it('never matches when it is empty', () => {
    expect(hasToken(`${RUN_TOKEN}=\0`, '')).toBe(false)
  })

  it('continues the token of the run that the host belongs to, and no other text', () => {
    expect(newRunToken(TOKEN)).toMatch(new RegExp(`^${TOKEN}/[0-9a-f-]{36}$`))
    expect(newRunToken(undefined)).toMatch(/^[0-9a-f-]{36}$/)
    for (const text of ['', 'a b', 'x\nremove y', `${TOKEN}/`, '/', "'; kill 1"]) {
      expect(newRunToken(text)).toMatch(/^[0-9a-f-]{36}$/)
    }
    expect(isToken(newRunToken(newRunToken(TOKEN)))).toBe(true)
  })
})

interface Listed {
  readonly environment: string | undefined
  readonly stat?: Partial<ProcessStat>
}

/** A table of processes. */
function tableOf(processes: Record<number, Listed>, counts: { forks?: number; maxPid?: number } = {}) {
  const table = new Map(Object.entries(processes).map(([pid, listed]) => [Number(pid), listed]))
  const read: number[] = []
  const reader: ProcessReader = {
    pids: () => [...table.keys()],
    environment: (pid) => {
      read.push(pid)
      return table.get(pid)?.environment
    },
    stat: (pid) => {
      const listed = table.get(pid)
      return (
        listed && { name: 'sleep', state: 'S', parent: 1, group: pid, isOfKernel: false, start: '1', ...listed.stat }
      )
    },
    forks: () => counts.forks,
    maxPid: () => counts.maxPid,
    emptySince: new Map(),
  }
  const scan = (mark: Partial<RunMark> = {}) => new TokenScan({ token: TOKEN, pid: 100, ...mark }, reader)
  return {
    table,
    read,
    scan,
    pidsOf: (mark?: Partial<RunMark>) =>
      scan(mark)
        .look()
        .found.map(({ pid }) => pid),
  }
}

describe('F22: the processes of a run', () => {
  it('are those that have the token and run, in whatever group they are', () => {
    const { scan } = tableOf({
      100: { environment: entry },
      101: { environment: entry, stat: { group: 7, name: 'node' } },
      102: { environment: entry, stat: { state: 'Z' } },
      103: { environment: 'A=b' },
      104: { environment: undefined },
      [process.pid]: { environment: entry },
      1: { environment: entry },
    })
    expect(scan().look()).toEqual({
      found: [
        { pid: 100, start: '1', group: 100, name: 'sleep' },
        { pid: 101, start: '1', group: 7, name: 'node' },
      ],
      isUnclear: false,
    })
  })

  it('are looked for among the processes that are younger than the run', () => {
    const { pidsOf, read } = tableOf(
      { 90: { environment: entry }, 100: { environment: entry } },
      { forks: 1000, maxPid: 5000 },
    )
    expect(pidsOf({ forks: 900 })).toEqual([100])
    expect(read).toEqual([100])
  })

  it.each([
    ['pids have started again from the lowest', 900, { forks: 5800, maxPid: 5000 }],
    ['the number of started processes is not known', 900, { maxPid: 5000 }],
    ['the highest pid is not known', 900, { forks: 1000 }],
    ['the number at the start of the run is not known', undefined, { forks: 1000, maxPid: 5000 }],
  ])('are looked for among all processes when %s', (_, forks, counts) => {
    const { pidsOf } = tableOf({ 90: { environment: entry }, 100: { environment: entry } }, counts)
    expect(pidsOf({ forks }).toSorted()).toEqual([100, 90])
  })

  it('are looked for again while a process that is executing a program shows no environment', async () => {
    const { table, scan } = tableOf({ 101: { environment: '' } })
    const looks: number[] = []
    await lookUntilGone(scan(), ({ found, isUnclear }) => {
      looks.push(found.length)
      if (looks.length === 3) table.set(101, { environment: entry })
      if (found.length > 0) table.delete(101)
      return isUnclear || found.length > 0
    })
    expect(looks).toEqual([0, 0, 0, 1])
  })

  it('are not awaited for ever when a process has an empty environment, which is looked at for 300 ms once', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const { scan } = tableOf({ 101: { environment: '' } })
    expect(scan().look().isUnclear).toBe(true)
    vi.advanceTimersByTime(299)
    expect(scan().look().isUnclear).toBe(true)
    vi.advanceTimersByTime(1)
    expect(scan().look().isUnclear).toBe(false)
    vi.advanceTimersByTime(1000)
    expect(scan().look().isUnclear).toBe(false)
  })

  it('do not include kernel threads and zombies, whose environment is empty', () => {
    const { scan } = tableOf({
      101: { environment: '', stat: { isOfKernel: true } },
      102: { environment: '', stat: { state: 'Z' } },
    })
    expect(scan().look()).toEqual({ found: [], isUnclear: false })
  })

  it('remember few processes with an empty environment', () => {
    const many = Object.fromEntries(Array.from({ length: 2500 }, (_, index) => [200 + index, { environment: '' }]))
    const { scan, table } = tableOf(many)
    expect(scan().look().isUnclear).toBe(true)
    expect(table.size).toBe(2500)
  })
})

it.runIf(process.platform === 'linux')('F22: finds real processes in sessions of their own', async () => {
  const token = newRunToken()
  const forks = systemProcesses.forks()
  const script = 'setsid sh -c "echo ready; exec sleep 600" & wait'
  const child = spawn('/bin/sh', ['-c', script], {
    env: { ...process.env, [RUN_TOKEN]: token },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  })
  const exited = once(child, 'exit')
  const { pid = 0 } = child
  const scan = new TokenScan({ token, pid, forks })
  await once(child.stdout, 'data')
  const names = () => scan.look().found.map(({ name, group }) => [name, group === pid])
  await waitFor(() =>
    expect(names()).toEqual([
      ['sh', true],
      ['sleep', false],
    ]),
  )
  await lookUntilGone(scan, ({ found }) => {
    for (const one of found) process.kill(one.pid, 'SIGKILL')
    return true
  })
  await exited
  expect(scan.look().found).toEqual([])
})
