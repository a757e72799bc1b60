/** How a surviving program ends, or goes on, together with what belongs to it: its children, its gate and its socket. Real programs. */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/system/clock.js'
import { reapProgram, toStartedProgram } from '../../../src/engine/reap.js'
import { AsyncTaskManager, processRunner, type ProcessRunnerOptions } from '../../../src/index.js'
import { followProgram, startSurviving } from '../../../src/runners/surviving-program.js'
import { readStore, sqliteStore } from '../../../src/store/index.js'
import { storedIn } from '../../support/left-program.js'
import { isAlive } from '../../support/lifelines.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-ends-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

const file = (): string => join(folder, 'tasks.db')
const until = async (isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** Launches the task `a`, which runs a script in a shell. */
function launch(script: string, options: Partial<ProcessRunnerOptions> = {}) {
  const manager = new AsyncTaskManager({ store: sqliteStore(file()), onError: () => undefined })
  onTestFinished(() => manager.dispose())
  const runner = processRunner({ command: 'sh', args: ['-c', script], survivesHost: true, ...options })
  manager.launch({ id: 'a', subagentName: 'program', goalPrompt: 'goal' }, runner)
  return { manager, printed: () => manager.readOutput('a')?.text.trim() ?? '' }
}

/** Starts a process of another group, which does not hold the output open, and prints its pid. */
const DETACH = "setsid sh -c 'sleep 60 >/dev/null 2>&1 & echo $!'"

it('K8: what it has left in its group is killed at its end', async () => {
  const { manager, printed } = launch('sleep 60 >/dev/null 2>&1 & echo $!')
  const { settled } = await manager.waitFor(['a'])
  expect(settled).toMatchObject([{ status: 'completed', output: { final_message: printed() } }])
  await until(() => !isAlive(Number(printed())))
})

it('F22: what has left its group is ended with it, too, with endDetached', async () => {
  const { manager, printed } = launch(DETACH, { endDetached: true, graceMs: 60_000 })
  const { settled } = await manager.waitFor(['a'])
  expect(settled).toMatchObject([{ status: 'completed', output: { final_message: printed() } }])
  expect(settled[0]?.output).not.toHaveProperty('detached_processes')
  expect(isAlive(Number(printed()))).toBe(false)
})

it('F22: what has left its group is named otherwise, and runs on', async () => {
  const { manager, printed } = launch(DETACH)
  const { settled } = await manager.waitFor(['a'])
  const pid = Number(printed())
  onTestFinished(() => void process.kill(pid, 'SIGKILL'))
  expect(settled[0]?.output).toEqual({ final_message: String(pid), detached_processes: [`${pid} (sleep)`] })
  expect(isAlive(pid)).toBe(true)
})

it('F22: what has left its group is asked to stop with it when its task is cancelled', async () => {
  const { manager, printed } = launch(`${DETACH}; sleep 60`, { graceMs: 60_000 })
  await until(() => /^\d+$/.test(printed()))
  manager.cancelTask('a')
  await until(() => !isAlive(Number(printed())))
})

it('K13: it goes on when its host is disposed, and the socket of its questions is removed', async () => {
  const { manager, printed } = launch('echo "$$ $AGENT_TASK_SOCKET"; exec sleep 60', { questions: true })
  await until(() => /^\d+ \S+$/.test(printed()))
  const [pid = '', socket = ''] = printed().split(' ')
  expect(existsSync(socket)).toBe(true)
  await manager.dispose()
  const program = toStartedProgram(readStore(file()).tasks[0]?.run?.['program'])
  onTestFinished(() => {
    if (program !== undefined) reapProgram(program)
  })
  expect(isAlive(Number(pid))).toBe(true)
  expect(existsSync(dirname(socket))).toBe(false)
})

it('a program whose shell was killed before it was let go has failed, and that is no uncaught error', async () => {
  const runFolder = join(folder, 'run')
  mkdirSync(runFolder)
  const start = { command: '/bin/echo', args: ['started'], cwd: undefined, env: process.env }
  const { child, program, release } = startSurviving(runFolder, start, 1000)
  const saveProgram = (): Promise<void> => {
    child.kill('SIGKILL')
    // The event loop does not turn, so the gate does not know that nobody reads it.
    for (let isRunning = true; isRunning;) isRunning = isAlive(child.pid ?? 0)
    return Promise.resolve()
  }
  await release({ ...storedIn(runFolder), saveProgram })
  const written: string[] = []
  const end = await followProgram(runFolder, {
    program,
    signal: new AbortController().signal,
    endDetached: false,
    killSignal: 'SIGTERM',
    graceMs: 0,
    clock: systemClock,
    maxOutputBytes: 1000,
    onStdout: (chunk) => written.push(String(chunk)),
    onStderr: () => undefined,
    onGap: () => undefined,
    onLost: () => undefined,
  })
  expect([end, written]).toEqual([{ exitCode: null, signal: 'SIGKILL' }, []])
})
