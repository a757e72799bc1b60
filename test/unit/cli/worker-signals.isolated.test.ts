/** `agent-tasks worker` from its start to the signal that ends it, without a Redis. test/cluster/command-line.test.ts has one. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import type * as worker from '../../../src/bullmq/start-worker.js'
import { waitFor } from '../../support/wait-for.js'

let hasDrained: () => void = () => undefined
const drain = vi.fn(() => new Promise<void>((resolve) => (hasDrained = resolve)))
const startWorker = vi.fn(({ log }: { log?: (line: string) => void }) => {
  log?.('the worker takes tasks')
  return Promise.resolve({ drain })
})
vi.mock(import('../../../src/bullmq/start-worker.js'), () => ({ startWorker }) as unknown as typeof worker)
const { begin, signal } = await import('./command-line.js')

it('starts with its settings, logs to standard error, and ends after what it runs has ended', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-worker-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'config.json')
  const subagent = { name: 'far', description: 'runs elsewhere', command: 'sh', runsOn: 'workers' }
  const workers = { connection: 'redis://localhost', concurrency: 3, lockMs: 20_000, drainSeconds: 5 }
  writeFileSync(file, JSON.stringify({ subagents: [subagent], workers }))
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never)
  onTestFinished(() => exit.mockRestore())
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const { ended, written } = begin(['worker', '--config', file, '--concurrency', '4'])
  expect(await ended).toMatchObject({ exitCode: 0, stdout: '' })
  const listener = process.listeners('SIGTERM').at(-1)
  onTestFinished(() => signals.forEach((name) => listener && process.off(name, listener)))
  expect(written.stderr).toMatch(/the worker takes tasks\n$/)
  const settings = { connection: 'redis://localhost', concurrency: 4, lockMs: 20_000, drainMs: 5000 }
  expect(startWorker).toHaveBeenCalledExactlyOnceWith(expect.objectContaining(settings))
  expect(Object.keys((startWorker.mock.calls[0]?.[0] as worker.WorkerOptions).subagents)).toEqual(['far'])
  signal('SIGTERM')
  await waitFor(() => expect(drain).toHaveBeenCalledOnce())
  expect(exit).not.toHaveBeenCalled()
  hasDrained()
  await waitFor(() => expect(exit).toHaveBeenCalledExactlyOnceWith(0))
})
