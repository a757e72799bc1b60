/** What the watchdog is told. Isolated, because a process has one watchdog. */
import childProcess from 'node:child_process'
import { expect, it, onTestFinished, vi } from 'vitest'
import { unwatchRun, watchRun } from '../../../src/engine/watchdog.js'

const TOKENS = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']

it('F22: gives a part of a second as a whole one: the watchdog counts seconds', () => {
  const write = vi.fn()
  const child = { on: vi.fn(), unref: vi.fn(), kill: vi.fn(), stdin: { on: vi.fn(), write } }
  const started = vi.spyOn(childProcess, 'spawn').mockReturnValue(child as never)
  onTestFinished(() => started.mockRestore())
  const [token = '', other = ''] = TOKENS
  watchRun({ token, killSignal: 'SIGTERM', graceMs: 100 })
  watchRun({ token: other, group: 7, killSignal: undefined, graceMs: 2000 })
  unwatchRun(token)
  unwatchRun(other)
  expect(write.mock.calls).toEqual([[`add ${token} 0 TERM 1\n`], [`add ${other} 7 none 2\n`], [`remove ${token}\n`]])
  expect(child.kill).toHaveBeenCalledWith('SIGKILL')
})
