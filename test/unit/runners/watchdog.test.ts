/** The watchdog of real program groups, in a host that is killed. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'

const watchdog = new URL('../../../src/runners/watchdog.ts', import.meta.url).href
const tsx = new URL('../../../node_modules/tsx/dist/loader.mjs', import.meta.url).href

/** A program that leads a group of its own. */
function program(): ChildProcess & { readonly pid: number } {
  const child = spawn('/bin/sleep', ['600'], { detached: true, stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child as ChildProcess & { readonly pid: number }
}

it('K8: kills the groups of a host that was killed, and none that had ended before: its number may be that of another one', async () => {
  const [ended, left] = [program(), program()]
  const ends = [ended, left].map((child) => once(child, 'exit'))
  const host = `
    import { unwatchGroup, watchGroup } from ${JSON.stringify(watchdog)}
    watchGroup(${ended.pid})
    watchGroup(${left.pid})
    unwatchGroup(${ended.pid})
    process.kill(process.pid, 'SIGKILL')
  `
  const { signal } = spawnSync(process.execPath, ['--import', tsx, '--input-type=module', '-e', host])
  expect(signal).toBe('SIGKILL')
  expect(await ends[1]).toEqual([null, 'SIGKILL'])
  // The watchdog kills in the order in which it was told: it is done by now.
  ended.kill('SIGTERM')
  expect(await ends[0]).toEqual([null, 'SIGTERM'])
})
