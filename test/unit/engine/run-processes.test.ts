/** The processes of a run, as real processes. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { endProgram, isForeign, type StartedProgram } from '../../../src/engine/reap.js'
import { RunProcesses } from '../../../src/engine/run-processes.js'
import { RUN_TOKEN } from '../../../src/engine/run-token.js'
import { identityOf } from '../../../src/system/process-identity.js'

const source = new URL('../../../src/engine/run-processes.ts', import.meta.url).href
const tsx = new URL('../../../node_modules/tsx/dist/loader.mjs', import.meta.url).href
const TOKEN = '00000000-0000-4000-8000-000000000003'

/** Starts a process, and waits until it executes its program. */
async function start(env: NodeJS.ProcessEnv): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn('/bin/sh', ['-c', 'echo ready; exec sleep 600'], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  })
  const exited = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  await once(child.stdout, 'data')
  return child as typeof child & { readonly pid: number }
}

/** A program of this host that has ended. */
async function endedProgram(more: Partial<StartedProgram> = {}): Promise<StartedProgram> {
  const leader = await start({ [RUN_TOKEN]: TOKEN })
  const identity = identityOf(leader.pid)!
  leader.kill('SIGKILL')
  await once(leader, 'exit')
  return { identity, token: TOKEN, ...more }
}

describe.runIf(process.platform === 'linux')('the processes of a run', () => {
  it('F22: are killed at once, also what has left the group of the program', async () => {
    const run = new RunProcesses({ killSignal: 'SIGTERM', graceMs: 60_000 })
    const env = run.environment({ PATH: process.env['PATH'] })
    const leader = spawn('/bin/sh', ['-c', 'exec sleep 600'], { env, detached: true, stdio: 'ignore' })
    run.lead(leader)
    const detached = await start(env)
    const ends = [leader, detached].map((child) => once(child, 'exit'))
    const kill = vi.spyOn(process, 'kill')
    run.kill()
    expect(kill).toHaveBeenCalledWith(detached.pid, 'SIGKILL')
    kill.mockRestore()
    await Promise.all(ends)
    run.close()
  })

  it('F22: get one signal of a stop: the watchdog of a host that dies later does not repeat it', () => {
    // The host waits for what the program says on stderr. Its stdout ends with the program, which the watchdog kills.
    const program = `trap 'echo asked; echo asked >&2' TERM; echo ready >&2; while :; do sleep 0.05; done`
    const host = `
      import { spawn } from 'node:child_process'
      import { once } from 'node:events'
      import { RunProcesses } from ${JSON.stringify(source)}
      const run = new RunProcesses({ killSignal: 'SIGTERM', graceMs: 1000 })
      const stdio = ['ignore', 'inherit', 'pipe']
      const child = spawn('/bin/sh', ['-c', ${JSON.stringify(program)}], { env: run.environment(process.env), detached: true, stdio })
      run.lead(child)
      await once(child.stderr, 'data')
      run.ask()
      await once(child.stderr, 'data')
      process.kill(process.pid, 'SIGKILL')
    `
    const args = ['--import', tsx, '--input-type=module', '-e', host]
    const { signal, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    expect([signal, stdout]).toEqual(['SIGKILL', 'asked\n'])
  })
})

describe.runIf(process.platform === 'linux')('the processes of a dead host', () => {
  it('K8: are left to its watchdog while that is running, a little longer than their grace', async () => {
    const program = await endedProgram({ graceMs: 0, watchdog: identityOf(process.pid)! })
    const left = await start({ [RUN_TOKEN]: TOKEN })
    const exit = once(left, 'exit')
    const ended = endProgram(program)
    left.kill('SIGTERM')
    expect(await exit).toEqual([null, 'SIGTERM'])
    expect(await ended).toBe(true)
  })

  it('K8: are not foreign while their environment is empty, as that of a process that starts another program', async () => {
    const other = await start({ [RUN_TOKEN]: `${TOKEN}0` })
    // Not with a shell, because some shells add variables.
    const empty = spawn('/bin/sleep', ['600'], { env: {}, stdio: 'ignore' })
    const exited = once(empty, 'exit')
    onTestFinished(async () => {
      empty.kill('SIGKILL')
      await exited
    })
    await once(empty, 'spawn')
    const isForeignTo = ({ pid = 0 }: ChildProcess): boolean => isForeign({ identity: identityOf(pid)!, token: TOKEN })
    expect([empty, other].map(isForeignTo)).toEqual([false, true])
  })
})
