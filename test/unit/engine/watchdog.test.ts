/** The watchdog of real program groups, in a host that is killed. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'

const watchdog = new URL('../../../src/engine/watchdog.ts', import.meta.url).href
const tsx = new URL('../../../node_modules/tsx/dist/loader.mjs', import.meta.url).href

/** A program that leads a group of its own. */
function program(env: object = {}, args = ['-c', 'exec sleep 600']): ChildProcess & { readonly pid: number } {
  const child = spawn('/bin/sh', args, { detached: true, stdio: 'ignore', env: { PATH: process.env['PATH'], ...env } })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child as ChildProcess & { readonly pid: number }
}

const TOKENS = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']

/** Runs lines of a host that then kills itself. */
function killHost(lines: string): void {
  const host = `
    import { unwatchRun, watchRun } from ${JSON.stringify(watchdog)}
    ${lines}
    process.kill(process.pid, 'SIGKILL')
  `
  const { signal, stderr } = spawnSync(process.execPath, ['--import', tsx, '--input-type=module', '-e', host])
  expect([signal, String(stderr)]).toEqual(['SIGKILL', ''])
}

const watch = (token: string | undefined, group: number, more: object = {}): string =>
  `watchRun(${JSON.stringify({ token, group, killSignal: 'SIGTERM', graceMs: 1000, ...more })})`

it('K8: stops the groups of a host that was killed, and none that had ended before: its number may be that of another one', async () => {
  const [ended, left] = [program(), program()]
  const ends = [ended, left].map((child) => once(child, 'exit'))
  killHost(`
    ${watch(TOKENS[0], ended.pid)}
    ${watch(TOKENS[1], left.pid)}
    unwatchRun(${JSON.stringify(TOKENS[0])})
  `)
  expect(await ends[1]).toEqual([null, 'SIGTERM'])
  ended.kill('SIGINT')
  expect(await ends[0]).toEqual([null, 'SIGINT'])
})

it('F22: asks what has the token to stop, and what has a longer token, and no other process', async () => {
  const [token = '', other = ''] = TOKENS
  const own = program({ AGENT_TASKS_RUN: token })
  const nested = program({ AGENT_TASKS_RUN: `${token}/${other}` })
  const longer = program({ AGENT_TASKS_RUN: `${token}0` })
  const inText = program({ TEXT: `AGENT_TASKS_RUN=${token}` })
  const ends = [own, nested].map((child) => once(child, 'exit'))
  killHost(`watchRun({ token: ${JSON.stringify(token)}, killSignal: 'SIGTERM', graceMs: 20_000 })`)
  expect(await Promise.all(ends)).toEqual([
    [null, 'SIGTERM'],
    [null, 'SIGTERM'],
  ])
  expect([longer, inText].map(({ exitCode, signalCode }) => exitCode ?? signalCode)).toEqual([null, null])
})

it('F22: kills after the grace period what ignores the signal, and does not repeat a signal that the host has sent', async () => {
  const [token = '', asked = ''] = TOKENS
  const stubborn = program({ AGENT_TASKS_RUN: token }, ['-c', "trap '' TERM; exec sleep 600"])
  const stopping = program({ AGENT_TASKS_RUN: asked })
  const ends = [stubborn, stopping].map((child) => once(child, 'exit'))
  killHost(`
    ${watch(token, stubborn.pid)}
    ${watch(asked, stopping.pid, { killSignal: undefined })}
  `)
  expect(await Promise.all(ends)).toEqual([
    [null, 'SIGKILL'],
    [null, 'SIGKILL'],
  ])
})

it('K8: kills a group without the token of its run that ignores the signal', async () => {
  const stubborn = program({}, ['-c', "trap '' TERM; exec sleep 600"])
  const end = once(stubborn, 'exit')
  killHost(watch(TOKENS[0], stubborn.pid))
  expect(await end).toEqual([null, 'SIGKILL'])
})
