/** Programs of stored tasks that cannot be started: their errors are those of a task without a store. The programs are real. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, processRunner, type ProcessRunnerOptions } from '../../../src/index.js'
import { sqliteStore } from '../../../src/store/index.js'
import type { RetryPolicy } from '../../../src/protocol/retry-policy.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-start-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

function program(name: string, content: string): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  chmodSync(path, 0o755)
  return path
}

/** The end of a task that runs the program, with or without a store. */
async function endOf(options: ProcessRunnerOptions, isStored: boolean, retry?: RetryPolicy) {
  const store = isStored ? { store: sqliteStore(join(folder, 'tasks.db')) } : {}
  const manager = new AsyncTaskManager({ ...store, onError: () => undefined })
  const { id } = manager.launch(
    { subagentName: 'program', goalPrompt: 'goal', kind: 'command', command: [options.command] },
    { run: processRunner(options), retry },
  )
  const { settled } = await manager.waitFor([id])
  await manager.dispose()
  rmSync(join(folder, 'tasks.db'), { force: true })
  return settled[0]
}

const ways = [{ survivesHost: false }, { survivesHost: true }]

it.each(ways)('F9: a missing interpreter has the error of a start that failed (%o)', async (way) => {
  const options = { command: program('script', '#!/no/such/interpreter\n'), ...way }
  const stored = await endOf(options, true)
  const plain = await endOf({ command: options.command }, false)
  expect(plain).toMatchObject({ errorName: 'ProcessError', errorCode: 'PROCESS_NOT_STARTED' })
  expect(stored).toMatchObject({ error: plain?.error, errorName: 'ProcessError', errorCode: 'PROCESS_NOT_STARTED' })
  expect(stored).not.toHaveProperty('exitCode')
})

it.each(ways)('F9: so have arguments that are too long (%o)', async (way) => {
  const options = { command: '/bin/sh', args: ['x'.repeat(3_000_000)] }
  const error = (await endOf(options, false))?.error
  expect(error).toContain('(E2BIG)')
  expect(await endOf({ ...options, ...way }, true)).toMatchObject({ error, errorCode: 'PROCESS_NOT_STARTED' })
})

it('F9: is repeated with start-failed', async () => {
  const command = program('script', '#!/no/such/interpreter\n')
  const retry: RetryPolicy = { attempts: 3, on: ['start-failed'], backoff: { initialMs: 0 } }
  expect(await endOf({ command }, true, retry)).toMatchObject({ attempt: 3, errorCode: 'PROCESS_NOT_STARTED' })
})

it.each([
  ['exit 127', 127],
  ['echo agent-tasks: 1: exec: no >&2; echo; exit 127', 127],
  ['echo agent-tasks: no >&2; exit 1', 1],
  ['echo agent-tasks: no >&2; echo more >&2; exit 126', 126],
])('F9: a program that ends with such a code itself has failed: %s', async (script, exitCode) => {
  const options = { command: program('own', `#!/bin/sh\n${script}\n`) }
  expect(await endOf(options, true)).toMatchObject({ errorCode: 'PROCESS_FAILED', exitCode })
})
