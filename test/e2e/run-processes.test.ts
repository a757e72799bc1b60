/** What programs leave behind when their run or their host ends: nothing, in whatever sessions and groups they have put their commands. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createAgentTasks, processRunner } from '../../src/index.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const host = fileURLToPath(new URL('../support/programs/tangled-host.ts', import.meta.url))

const instanceHost = fileURLToPath(new URL('../support/programs/instance-host.ts', import.meta.url))

/** How a program can put a command where a signal to its process group does not reach it. `SLEEP` is the command. */
const shapes: Readonly<Record<string, string>> = {
  'its own group': 'SLEEP &',
  'a session (setsid)': 'setsid SLEEP &',
  'a group (timeout)': 'timeout 600 SLEEP &',
  'jobs (set -m)': "sh -c 'set -m; SLEEP & wait' &",
  'a pipeline of jobs': "sh -c 'set -m; SLEEP | SLEEP & wait' &",
  'a daemon (double fork)': "(setsid sh -c '(SLEEP &) &' &)",
  'a daemon that ignores SIGTERM': `setsid sh -c 'trap "" TERM HUP; SLEEP & wait' &`,
  'a session in a session': `setsid sh -c "setsid sh -c 'SLEEP & wait' & wait" &`,
}

let seconds = 6_000_000 + (process.pid % 1000) * 1000

/** All shapes in one script, whose commands can be told from all others on this machine. */
function tangle(): { script: string; expected: number; left: () => string[] } {
  seconds += 1
  const sleep = `sleep ${seconds}`
  const lines = Object.values(shapes).map((line) => line.replaceAll('SLEEP', sleep))
  const left = (): string[] =>
    readdirSync('/proc').flatMap((pid) => {
      if (!/^\d+$/.test(pid)) return []
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')
        return words[0] === 'sleep' && words[1] === String(seconds) ? [pid] : []
      } catch {
        return []
      }
    })
  onTestFinished(() => left().forEach((pid) => process.kill(Number(pid), 'SIGKILL')))
  return { script: [...lines, 'wait; sleep 600'].join('\n'), expected: lines.length + 1, left }
}

const LONG = { timeout: 30_000, interval: 50 }

describe.runIf(process.platform === 'linux')(
  'F22: nothing is left of programs that use sessions, groups and jobs',
  () => {
    it.each(['a cancel', 'a deadline', 'dispose'])('after %s', async (how) => {
      const { script, expected, left } = tangle()
      const run = processRunner({ command: '/bin/sh', args: ['-c', script], graceMs: 700 })
      const tasks = createAgentTasks({ subagents: { program: run } })
      const { id } = tasks.launch('program', 'run', how === 'a deadline' ? { timeoutMs: 4000 } : {})
      await vi.waitFor(() => expect(left()).toHaveLength(expected), LONG)
      if (how === 'a cancel') tasks.getAsyncTaskManager().cancelTask(id)
      if (how === 'a deadline') {
        const { settled } = await tasks.getAsyncTaskManager().waitFor([id])
        expect(settled[0]).toMatchObject({ status: 'failed', errorCode: 'TASK_TIMEOUT' })
      }
      await tasks.dispose()
      expect(left()).toEqual([])
    })

    it('after a cancel of a command, and its record says how many were ended', async () => {
      const { script, expected, left } = tangle()
      const tasks = createAgentTasks({ commands: { shell: true } })
      const { metadata } = await tasks.tools.run_command.execute({ command: script, async: true, timeout_seconds: 4 })
      await vi.waitFor(() => expect(left()).toHaveLength(expected), LONG)
      const { settled } = await tasks.getAsyncTaskManager().waitFor([String(metadata?.['agentId'])])
      expect(left()).toEqual([])
      expect(settled[0]?.endedProcesses).toBeGreaterThanOrEqual(expected)
      await tasks.dispose()
    })

    /** Starts a host as a process. */
    async function startHost(options: { script: string; file?: string }) {
      const child = spawn(process.execPath, ['--import', 'tsx', host, JSON.stringify({ graceMs: 1000, ...options })], {
        cwd: root,
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      onTestFinished(() => void child.kill('SIGKILL'))
      const exited = once(child, 'exit')
      await once(child.stdout, 'data')
      return { child, exited }
    }

    it.each([
      ['without a store', false],
      ['with a store', true],
    ])('after its host was killed, %s', async (_, isStored) => {
      const folder = mkdtempSync(join(tmpdir(), 'run-processes-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
      const { script, expected, left } = tangle()
      const { child, exited } = await startHost({ script, ...(isStored && { file: join(folder, 'tasks.db') }) })
      await vi.waitFor(() => expect(left()).toHaveLength(expected), LONG)
      child.kill('SIGKILL')
      await exited
      await vi.waitFor(() => expect(left()).toEqual([]), LONG)
    })

    it('after its host and the watchdog were killed, when the next host has started', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'run-processes-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
      const file = join(folder, 'tasks.db')
      const { script, expected, left } = tangle()
      const first = await startHost({ script, file })
      await vi.waitFor(() => expect(left()).toHaveLength(expected), LONG)
      killWatchdogOf(first.child.pid ?? 0)
      first.child.kill('SIGKILL')
      await first.exited
      expect(left()).toHaveLength(expected)
      const next = await startHost({ script: '', file })
      await vi.waitFor(() => expect(left()).toEqual([]), LONG)
      next.child.kill('SIGTERM')
      await next.exited
    })
  },
)

/** Kills the watchdog of a host, which is its child. */
function killWatchdogOf(host: number): void {
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    try {
      const [, parent] = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? []
      const isWatchdog = readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('agent-tasks-watchdog')
      if (Number(parent) === host && isWatchdog) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // The process has ended.
    }
  }
}

it.runIf(process.platform === 'linux')(
  'F22: an MCP server that ignores the end of its input and SIGTERM does not outlive a host that was killed',
  async () => {
    seconds += 1
    const marks = [String(seconds), `deaf-${seconds}`]
    const left = (): string[] =>
      readdirSync('/proc').filter((pid) => {
        try {
          const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')
          return /^\d+$/.test(pid) && marks.some((mark) => words.includes(mark)) && pid !== String(child.pid)
        } catch {
          return false
        }
      })
    const child = spawn(process.execPath, ['--import', 'tsx', instanceHost, String(seconds)], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => {
      child.kill('SIGKILL')
      left().forEach((pid) => process.kill(Number(pid), 'SIGKILL'))
    })
    await once(child.stdout, 'data')
    // The server, and the program that it has started.
    await vi.waitFor(() => expect(left()).toHaveLength(2), LONG)
    child.kill('SIGKILL')
    await once(child, 'exit')
    await vi.waitFor(() => expect(left()).toEqual([]), LONG)
  },
)

describe('F22: how clients end a host', () => {
  /** A program that takes a second to clean up after SIGTERM, and does not survive a second signal. */
  const cleaning = (file: string): string => `
    n=0
    trap 'n=$((n + 1)); [ $n = 1 ] || { echo twice >> ${file}; exit 1; }; echo stopping >> ${file}; sleep 1; echo cleaned >> ${file}; exit 0' TERM
    echo started >> ${file}
    while :; do sleep 0.1; done`

  it.each([
    [
      'closes stdin, sends SIGTERM and kills it after 2 s',
      [
        ['end', 0],
        ['SIGTERM', 1],
        ['SIGKILL', 2000],
      ],
    ],
    [
      'sends SIGINT, SIGTERM after 100 ms and SIGKILL after 500 ms',
      [
        ['SIGINT', 0],
        ['SIGTERM', 100],
        ['SIGKILL', 500],
      ],
    ],
    [
      'sends SIGTERM and kills it at once',
      [
        ['SIGTERM', 0],
        ['SIGKILL', 60],
      ],
    ],
  ] as const)('programs of a host clean up when its client %s', async (_, steps) => {
    const folder = mkdtempSync(join(tmpdir(), 'run-processes-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
    const file = join(folder, 'log')
    const log = (): string => {
      try {
        return readFileSync(file, 'utf8')
      } catch {
        return ''
      }
    }
    const argument = JSON.stringify({ script: cleaning(file), graceMs: 10_000 })
    const child = spawn(process.execPath, ['--import', 'tsx', host, argument], {
      cwd: root,
      stdio: ['pipe', 'inherit', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    await vi.waitFor(() => expect(log()).toBe('started\n'), LONG)
    for (const [what, ms] of steps) {
      setTimeout(() => {
        if (what === 'end') child.stdin.end()
        else child.kill(what)
      }, ms)
    }
    await vi.waitFor(() => expect(log()).toBe('started\nstopping\ncleaned\n'), LONG)
  })
})

it('F22: after wait_for_async_tasks the port of a cancelled server is free', async () => {
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port } = free.address() as { port: number }
  await new Promise((resolve) => free.close(resolve))
  const server = `
    const server = require('node:net').createServer().listen(${port}, '127.0.0.1', () => console.log('listens'))
    process.on('SIGTERM', () => setTimeout(() => process.exit(), 400))`
  const tasks = createAgentTasks({ commands: { allow: [process.execPath] } })
  onTestFinished(() => tasks.dispose())
  const start = async (): Promise<string> => {
    const call = { command: process.execPath, args: ['-e', server], async: true }
    const { metadata } = await tasks.tools.run_command.execute(call)
    return String(metadata?.['agentId'])
  }
  const isListening = (id: string) => tasks.getAsyncTaskManager().readOutput(id)?.text.includes('listens')
  const first = await start()
  await vi.waitFor(() => expect(isListening(first)).toBe(true), LONG)
  const { llmContent, metadata } = await tasks.tools.check_async_tasks.execute({ action: 'cancel', task_id: first })
  expect(llmContent).toContain('It is stopping: its program may take up to 5 s to end.')
  expect(metadata).toMatchObject({ status: 'cancelled', cancelled: true, stopping: true, stopsWithinMs: 5000 })
  const list = await tasks.tools.check_async_tasks.execute({})
  expect(list.llmContent).toContain('stopping: its program may take up to 5 s to end')
  await tasks.tools.wait_for_async_tasks.execute({ task_ids: [first] })
  const second = await start()
  await vi.waitFor(() => expect(isListening(second)).toBe(true), LONG)
})
