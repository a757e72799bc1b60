// Stores whose files are on a read-only mount, locked by another process, or no files at all, as the command line and a host meet them.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { createAgentTasks } from '../../src/index.js'
import { sqliteStore } from '../../src/store/index.js'

const program = ['dist/src/cli/main.js']
const mayMount = spawnSync('unshare', ['-rm', 'true']).status === 0

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-store-files-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A host that runs one task, and drops it from memory, so that it is in the history. */
async function fill(file: string): Promise<void> {
  const tasks = createAgentTasks({
    store: sqliteStore(file),
    subagents: { echo: ({ goal }) => ({ final_message: goal }) },
    maxAsyncTasks: 1,
  })
  for (const goal of ['old', 'b', 'c', 'd']) await tasks.launch('echo', goal).result
  await tasks.dispose()
}

it.skipIf(!mayMount)('K11: a backup on a read-only mount is read by every command', async () => {
  const folder = newFolder()
  await fill(join(folder, 'tasks.db'))
  const file = join(folder, 'tasks.db')
  const before = readdirSync(folder)
  const agentTasks = (...args: string[]): string =>
    [process.execPath, ...program, ...args].map((arg) => `'${arg}'`).join(' ')
  const script = `mount --bind -o ro '${folder}' '${folder}' && mount -o remount,ro,bind '${folder}' || exit 9
    ! touch '${folder}/probe' 2>/dev/null || exit 9
    ${agentTasks('store', 'show', file)} && ${agentTasks('store', 'check', file)} && ${agentTasks('tasks', 'history', '--store', file, '--text', 'old')}`
  const { status, stdout, stderr } = spawnSync('unshare', ['-rm', 'sh', '-c', script], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
  expect(stdout).toContain('tasks.db is sound: ')
  expect(stdout).toMatch(/echo\s+main\s+completed .*old/)
  expect(readdirSync(folder)).toEqual(before)
})

it.each(['-history', '-journal'])(
  'K11: a command that reads a store does not wait for a FIFO in place of FILE%s',
  async (end) => {
    const folder = newFolder()
    const file = join(folder, 'tasks.db')
    await fill(file)
    rmSync(`${file}${end}`, { force: true })
    spawnSync('mkfifo', [`${file}${end}`])
    const child = spawn(process.execPath, [...program, 'tasks', 'history', '--store', file])
    onTestFinished(() => void child.kill('SIGKILL'))
    child.stdout.resume()
    const [stderr] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect(stderr).toContain(`${file}${end}: it is not a file`)
    expect(child.exitCode).toBe(2)
  },
)

it('K11: a folder in place of a history is an error, and a host goes on without it', async () => {
  const folder = newFolder()
  const file = join(folder, 'tasks.db')
  mkdirSync(`${file}-history`)
  const errors: unknown[] = []
  const tasks = createAgentTasks({
    store: sqliteStore(file),
    subagents: { echo: ({ goal }) => ({ final_message: goal }) },
    onError: (error) => errors.push(error),
  })
  expect((await tasks.launch('echo', 'a').result).final_message).toBe('a')
  await expect(tasks.history()).rejects.toThrow(`${file}-history: it is not a file`)
  await tasks.dispose()
  expect(readdirSync(`${file}-history`)).toEqual([])
})

it('a process that has locked a store and its history delays what is written, and does not block the host', async () => {
  const file = join(newFolder(), 'tasks.db')
  await fill(file)
  const tasks = createAgentTasks({
    store: sqliteStore(file),
    subagents: { echo: ({ goal }) => ({ final_message: goal }) },
    maxAsyncTasks: 1,
  })
  await tasks.recovered
  const driver = fileURLToPath(new URL('../../src/store/sqlite/driver.ts', import.meta.url))
  const locker = spawn(process.execPath, [
    ...['--import', 'tsx', '--input-type=module', '-e'],
    `import { openDatabase } from ${JSON.stringify(driver)}
    const open = ${JSON.stringify([file, `${file}-history`])}.map((name) => openDatabase(name))
    for (const database of open) database.exec('BEGIN IMMEDIATE')
    console.log('locked')
    process.stdin.on('data', () => {
      for (const database of open) database.exec('COMMIT')
      process.exit()
    })`,
  ])
  onTestFinished(() => void locker.kill('SIGKILL'))
  await once(locker.stdout, 'data')
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  const { result } = tasks.launch('echo', 'while it is locked')
  const found = tasks.history({ text: 'old' })
  setTimeout(() => locker.stdin.write('go\n'), 1500)
  expect((await result).final_message).toBe('while it is locked')
  expect((await found).tasks).toHaveLength(1)
  delay.disable()
  expect(delay.max / 1e6).toBeLessThan(1000)
  await tasks.dispose()
})
