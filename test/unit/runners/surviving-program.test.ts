/** Programs of stored tasks: real programs, in the process of the test. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, processRunner, type ProcessRunnerOptions } from '../../../src/index.js'
import { endSurvivor } from '../../../src/engine/program-folder.js'
import { identityOf, stateOf } from '../../../src/system/process-identity.js'
import { reapProgram, toStartedProgram } from '../../../src/engine/reap.js'
import { memoryStore, sqliteStore, StoreError, type Store } from '../../../src/store/index.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-survivors-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

function managerOn(store: Store = sqliteStore(join(folder, 'tasks.db'))): AsyncTaskManager {
  const manager = new AsyncTaskManager({ store, onError: () => undefined })
  onTestFinished(() => manager.dispose())
  return manager
}

async function settle(options: Partial<ProcessRunnerOptions>, script: string, manager = managerOn()) {
  const runner = processRunner({ command: 'sh', args: ['-c', script], ...options })
  manager.launch({ id: 'a', subagentName: 'program', goalPrompt: 'goal' }, runner)
  const { settled } = await manager.waitFor(['a'])
  return settled[0]
}

const survivesHost = true

it('K8: a surviving program completes its task with its output', async () => {
  expect(await settle({ survivesHost }, 'echo one; echo two >&2')).toMatchObject({
    status: 'completed',
    output: { final_message: 'one' },
  })
})

it('K8: a surviving program that fails says how, with the end of its stderr', async () => {
  const failed = await settle({ survivesHost }, 'echo trouble >&2; exit 3')
  expect(failed?.status).toBe('failed')
  expect(failed?.error).toMatch(/3/)
  expect(failed?.error).toContain('trouble')
})

it('K8: a surviving program that a signal ends says which', async () => {
  expect((await settle({ survivesHost }, 'kill -USR1 $$'))?.error).toContain('SIGUSR1')
})

it('K8: a surviving program is not started when it does not exist', async () => {
  expect((await settle({ survivesHost, command: 'no-such-program-anywhere' }, ''))?.error).toMatch(/ENOENT/)
  expect(
    (await settle({ survivesHost, command: '/etc/passwd' }, '', managerOn(sqliteStore(join(folder, 'b.db')))))?.error,
  ).toMatch(/EACCES|ENOENT/)
})

it('K8: a surviving program is not started in a directory that does not exist', async () => {
  expect((await settle({ survivesHost, cwd: join(folder, 'none') }, 'true'))?.error).toMatch(
    /its working directory .* does not exist/,
  )
})

it('K8: a surviving program needs a store with a folder', async () => {
  expect((await settle({ survivesHost }, 'true', managerOn(memoryStore())))?.error).toMatch(
    /needs a store with a folder/,
  )
})

it('K8: a cancelled survivor is stopped, with its children, and killed after its grace', async () => {
  const manager = managerOn()
  const runner = processRunner({
    command: 'sh',
    args: ['-c', "trap '' TERM; echo $$; sleep 60 & wait; wait"],
    survivesHost,
    graceMs: 50,
  })
  manager.launch({ id: 'a', subagentName: 'program', goalPrompt: 'goal' }, runner)
  let text = ''
  while (!/^\d+\n/.test(text)) {
    text = manager.readOutput('a')?.text ?? ''
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  manager.cancelTask('a')
  await manager.dispose()
  expect(identityOf(Number(text))).toBeUndefined()
})

it('K8: a program that does not survive runs behind its gate, with the same result', async () => {
  expect(await settle({}, 'echo one; sleep 0.01')).toMatchObject({
    status: 'completed',
    output: { final_message: 'one' },
  })
  expect((await settle({}, 'exit 4', managerOn(sqliteStore(join(folder, 'b.db')))))?.error).toMatch(/4/)
})

it('K8: two programs share a watchdog, and one that ends is forgotten', async () => {
  const manager = managerOn()
  const launch = (id: string, script: string) =>
    manager.launch(
      { id, subagentName: 'program', goalPrompt: 'goal' },
      processRunner({ command: 'sh', args: ['-c', script] }),
    )
  launch('a', 'sleep 0.05')
  launch('b', 'sleep 0.2')
  const { settled } = await manager.waitFor(['a', 'b'])
  expect(settled.map(({ status }) => status)).toEqual(['completed', 'completed'])
})

it('K8: the files of a program that has not started are removed', () => {
  endSurvivor(folder, undefined)
  expect(existsSync(folder)).toBe(false)
  endSurvivor(folder, undefined)
})

it('K8: a process is known by its start and its boot, and only a known one is signalled', () => {
  const own = identityOf(process.pid)!
  expect(stateOf(own)).toBe('alive')
  expect(stateOf({ ...own, start: '1' })).toBe('other')
  expect(stateOf({ ...own, boot: 'another' })).toBe('other')
  expect(stateOf({ ...own, pid: 2 ** 22 + 1 })).toBe('gone')
  expect(reapProgram({ identity: { ...own, start: '1' }, token: 'a token that no process has' })).toBe(0)
  expect(toStartedProgram({ identity: own, token: 'a' })).toEqual({ identity: own, token: 'a' })
  for (const wrong of [undefined, {}, { identity: { ...own, pid: -1 }, token: 'a' }, { identity: own }]) {
    expect(toStartedProgram(wrong)).toBeUndefined()
  }
})

it.each([true, false])('K8: a program is not started when its identity cannot be stored (%o)', async (survivesHost) => {
  const onDisk = sqliteStore(join(folder, 'tasks.db'))
  let writes = 0
  const store: Store = {
    ...onDisk,
    write: async (changes) => {
      writes += 1
      if (writes === 2) throw new StoreError('STORE_FULL', 'the disk is full')
      await onDisk.write(changes)
    },
  }
  const proof = join(folder, 'proof')
  const failed = await settle({ survivesHost }, `touch ${proof}`, managerOn(store))
  expect(failed).toMatchObject({ status: 'failed', errorCode: 'STORE_FULL' })
  expect(existsSync(proof)).toBe(false)
})

describe('a survivor whose output does not fit on the disk', () => {
  const modules = ['index', 'store/index'].map((name) => new URL(`../../../src/${name}.ts`, import.meta.url).href)

  /** Runs two tasks in a host that can write no file of more than 1 MB: their programs write more, and all of it is to be kept. */
  function settleOnFullDisk() {
    const script = `
      import { AsyncTaskManager, processRunner } from ${JSON.stringify(modules[0])}
      import { memoryStore } from ${JSON.stringify(modules[1])}
      // Only the files of the programs meet the limit.
      const manager = new AsyncTaskManager({ store: { ...memoryStore(), directory: ${JSON.stringify(join(folder, 'runs'))} } })
      const args = ['-c', 'head -c 1200000 /dev/zero | tr -c x x; echo; echo 12']
      for (const parse of ['text', 'json-last-line']) {
        const run = processRunner({ command: 'sh', args, survivesHost: true, maxOutputBytes: 1e7, parse })
        manager.launch({ id: parse, subagentName: 'program', goalPrompt: 'goal' }, run)
      }
      const { settled } = await manager.waitFor(['text', 'json-last-line'])
      const tail = manager.readOutput('text', { cursor: 0, maxBytes: 1e6 }).text.slice(-200)
      console.log(JSON.stringify({ tail, settled: settled.map(({ output, error, errorCode }) => ({
        text: output?.final_message?.slice(0, 200), error: error?.slice(0, 200), errorCode })) }))
      await manager.dispose()
    `
    const tsx = new URL('../../../node_modules/tsx/dist/loader.mjs', import.meta.url).href
    // A limit on the size of files stands in for a full disk; SIGXFSZ would end the process.
    const command = `trap '' XFSZ; ulimit -f 1000; exec "$0" --import "$1" --input-type=module -e "$2"`
    const { stdout } = spawnSync('bash', ['-c', command, process.execPath, tsx, script], {
      encoding: 'utf8',
      timeout: 60_000,
    })
    return JSON.parse(stdout) as {
      readonly tail: string
      readonly settled: readonly { readonly text?: string; readonly error?: string; readonly errorCode?: string }[]
    }
  }

  it('K8: completes as text that says what is missing, and fails as anything else', () => {
    const { tail, settled } = settleOnFullDisk()
    const [text, json] = settled
    expect(text?.text).toMatch(/^\[a part of the output is missing: it could not be written to the store\]\nx+/)
    expect(json).toMatchObject({ errorCode: 'PROCESS_OUTPUT' })
    expect(json?.error).toContain('a part of the output could not be written to the store')
    expect(tail).toContain('a part of the output is missing')
  })

  it('K8: says so also when it has only left the end of a long output unwritten', async () => {
    // What holds the output open is ended before the script can write the end of it.
    const script = 'head -c 200000 /dev/zero | tr -c x x; sleep 60 & exit 0'
    const end = await settle({ survivesHost, maxOutputBytes: 1000 }, script)
    expect(end?.output?.final_message).toMatch(/^\[a part of the output is missing/)
  })

  it('says nothing of the kind when the output was longer than is kept, and is there at both ends', async () => {
    const script = 'head -c 300000 /dev/zero | tr -c x x; echo end'
    const end = await settle({ survivesHost, maxOutputBytes: 1000 }, script)
    expect(end?.output?.final_message).toMatch(/^\[\d+ bytes are left out here\]\nx+end$/)
  })
})
