import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { runProgram } from '../../../src/cli/program.js'
import { sqliteStore } from '../../../src/store/index.js'

function storeFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'tasks.db')
}

async function run(...args: string[]) {
  let [out, err] = ['', '']
  const io = {
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (err += text) },
    env: {},
    readStdin: () => Promise.resolve(''),
  }
  const code = await runProgram(args, io, '0')
  return { out, err, code }
}

function fill(file: string): void {
  const store = sqliteStore(file)
  store.open()
  store.write([
    {
      table: 'tasks',
      put: {
        ...{ id: 'a', owner: 'main', status: 'completed', delivery: 'owed', attempt: 1, seq: 1, launchedAt: 0 },
        record: { goalPrompt: 'look\u001b[31m into it' },
      },
    },
    { table: 'deliveries', put: { id: 'd', owner: 'main', state: 'sent', at: 1, taskIds: ['a'] } },
    { table: 'commandTasks', put: { id: 'c', instanceId: 'i', status: 'queued', seq: 1, createdAt: 0, record: {} } },
  ])
  store.close()
}

it('shows what is stored, without control characters', async () => {
  const file = storeFile()
  fill(file)
  const { out, err, code } = await run('store', 'show', file)
  expect(code).toBe(0)
  expect(out).toMatch(/^TASK\s+OWNER\s+STATUS/)
  expect(out).toMatch(/a\s+main\s+completed\s+owed\s+1/)
  expect(out).toMatch(/c\s+i\s+queued/)
  expect(out).not.toContain('\u001b')
  expect(err).toContain('not confirmed yet: 1')
  expect(JSON.parse((await run('store', 'show', file, '--json')).out)).toMatchObject({ tasks: [{ id: 'a' }] })
})

it('exports every row as a line of JSON', async () => {
  const file = storeFile()
  fill(file)
  const lines = (await run('store', 'export', file)).out.trim().split('\n')
  expect(lines.map((line) => (JSON.parse(line) as { table: string }).table)).toEqual([
    'tasks',
    'deliveries',
    'commandTasks',
  ])
})

it('checks a file, and says what is wrong with it', async () => {
  const file = storeFile()
  fill(file)
  expect((await run('store', 'check', file)).out).toContain('is sound: 1 tasks, 1 command tasks')
  expect(JSON.parse((await run('store', 'check', file, '--json')).out)).toMatchObject({ isSound: true })
  const empty = `${file}-empty`
  writeFileSync(empty, '')
  expect(await run('store', 'check', empty)).toMatchObject({ code: 2, err: expect.stringMatching(/empty/) as string })
  const missing = await run('store', 'show', `${file}-none`)
  expect(missing).toMatchObject({ code: 2, err: expect.stringMatching(/no such file/) as string })
})
