// The commands that connect to a server: their output and exit codes.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { localInstance } from '../../../src/command-tasks/instances/local-instance.js'
import { containing, jsonLines, matching, run, startCommandLine } from './command-line.js'

const add = { task_name: 'Add', commands: [{ tool_name: 'add', intention: 'Add two numbers', args: { a: 2, b: 3 } }] }
const bad = { task_name: 'Bad', commands: [{ tool_name: 'nope' }, { tool_name: 'add', args: { a: 1, b: 1 } }] }

describe('submit', () => {
  it('prints the results to stdout, and the progress to stderr', async () => {
    const { submit } = await startCommandLine()
    const { exitCode, stdout, stderr } = await submit(add)
    expect([exitCode, stdout]).toEqual([0, '5\n'])
    const id = /task_\S+/.exec(stderr)?.[0]
    expect(stderr.split('\n').slice(0, 2)).toEqual([`${id} [1/1] add running`, `${id} [1/1] add success`])
    expect(stderr).toMatch(/ completed \(1 of 1 commands in \d+ ms\)\n$/)
  })

  it('reads a file, and names an invalid field', async () => {
    const { run: ask } = await startCommandLine()
    const folder = await mkdtemp(join(tmpdir(), 'agent-tasks-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const file = join(folder, 'task.json')
    await writeFile(file, JSON.stringify(add))
    expect(await ask(['submit', file])).toMatchObject({ exitCode: 0, stdout: '5\n' })
    await writeFile(file, `\uFEFF${JSON.stringify(add)}`)
    expect(await ask(['submit', file])).toMatchObject({ exitCode: 0, stdout: '5\n' })
    await writeFile(file, JSON.stringify({ ...add, commands: [{ tool_name: 7 }] }))
    expect(await ask(['submit', file])).toMatchObject({
      exitCode: 2,
      stderr: `agent-tasks: ${file}.commands[0].tool_name: got 7, expected a string.\n`,
    })
    await writeFile(file, '{')
    expect(await ask(['submit', file])).toMatchObject({ exitCode: 2, stderr: containing('expected JSON') })
    const missing = await ask(['submit', join(folder, 'none.json')])
    expect([missing.exitCode, missing.stderr]).toEqual([2, containing('ENOENT')])
  })

  it('exits with 1 when a command fails, and prints its error', async () => {
    const { submit } = await startCommandLine()
    const { exitCode, stdout, stderr } = await submit(bad)
    expect([exitCode, stdout]).toEqual([1, ''])
    expect(stderr).toContain('[1/2] nope error: UNKNOWN_TOOL: Unknown tool: "nope"')
    expect(stderr).toContain('failed (1 of 2 commands')
  })

  it('prints only events with --json', async () => {
    const { submit } = await startCommandLine()
    const { exitCode, stdout, stderr } = await submit(bad, ['--json'])
    expect([exitCode, stderr]).toEqual([1, ''])
    expect(jsonLines(stdout)).toMatchObject([
      { type: 'submitted', queuePosition: 1 },
      { type: 'task_progress', status: 'running' },
      { type: 'task_progress', status: 'error' },
      { type: 'task_complete', status: 'failed' },
    ])
  })

  it('draws a bar for each command on a terminal, without colour with NO_COLOR', async () => {
    const { submit } = await startCommandLine()
    const { stderr, stdout } = await submit(add, [], { isTTY: true })
    expect(stdout).toBe('5\n')
    expect(stderr).toContain('Add two numbers \u001b[32m[====================] success\u001b[39m')
    const plain = await submit(bad, [], { isTTY: true, env: { NO_COLOR: '1' } })
    expect(plain.stderr).toContain('nope [====================] error UNKNOWN_TOOL: Unknown tool: "nope"')
    expect(plain.stderr).toContain('add  [....................] skipped')
    // eslint-disable-next-line no-control-regex
    expect(plain.stderr).not.toMatch(/\u001b\[\d\dm/)
  })

  it('removes control characters from the text of tools', async () => {
    const tool = {
      name: 'evil',
      execute: () => {
        throw new Error('one\u001b[2Jtwo\nthree')
      },
    }
    const { submit } = await startCommandLine({ instances: [localInstance({ id: 'x', tools: [tool] })] })
    const { stderr } = await submit({ task_name: 'Evil', commands: [{ tool_name: 'evil' }] })
    expect(stderr).toContain('EXECUTION_ERROR: one [2Jtwo three')
    expect(stderr).not.toContain('\u001b')
  })

  it('prints no control characters of names, ids and errors, whatever the command', async () => {
    const name = 'evil\u001b]0;title\u0007\u009b2J'
    const tool = { name, description: name, execute: () => Promise.reject(new Error(name)) }
    const { submit, run: ask } = await startCommandLine({ instances: [localInstance({ id: 'x', tools: [tool] })] })
    const task = { task_name: name, task_intention: name, commands: [{ tool_name: name, intention: name }] }
    const printed = [await submit(task), await submit(task, [], { isTTY: true, env: { NO_COLOR: '1' } })]
    const [, id = ''] = /(task_\S+)/.exec(printed[0]?.stderr ?? '') ?? []
    for (const args of [
      ['tasks', 'watch', id],
      ['tasks', 'list'],
      ['instances'],
      ['tasks', 'cancel', name],
      ['tasks', 'watch', id, '--json'],
    ]) {
      printed.push(await ask(args))
    }
    for (const { stdout, stderr } of printed) {
      expect(stdout + stderr).toMatch(/evil/)
      // eslint-disable-next-line no-control-regex
      expect(stdout + stderr).not.toMatch(/\u001b\]|\u0007|\u009b/)
    }
  })

  it('prints only the id with --detach', async () => {
    const { submit, run: ask } = await startCommandLine()
    const { exitCode, stdout, stderr } = await submit({ ...add, instanceId: 'nowhere' }, [
      '--detach',
      '--instance',
      'calc',
    ])
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^task_\S+\n$/)
    expect(await ask(['tasks', 'watch', stdout.trim()])).toMatchObject({ exitCode: 0, stdout: containing('5\n') })
    expect(await ask(['tasks', 'watch', stdout.trim().slice(0, 8)])).toMatchObject({
      exitCode: 0,
      stdout: containing('5\n'),
    })
  })

  it('exits with 4 and a hint when the server refuses the task', async () => {
    const { submit } = await startCommandLine()
    expect(await submit({ ...add, instanceId: 'nowhere' })).toMatchObject({
      exitCode: 4,
      stderr: matching(/^agent-tasks: .*nowhere.*\n`agent-tasks instances` lists the instances\.\n$/),
    })
    const strict = await startCommandLine({ auth: { tokens: ['right'] } })
    expect(await strict.submit(add)).toMatchObject({
      exitCode: 4,
      stderr: containing('AGENT_TASKS_TOKEN'),
    })
    expect(await strict.submit(add, [], { env: { AGENT_TASKS_TOKEN: 'right' } })).toMatchObject({ exitCode: 0 })
  })

  it('exits with 3 and a hint when there is no server', async () => {
    const { server, run: ask } = await startCommandLine()
    await server.close()
    const { exitCode, stderr } = await ask(['submit', '-', '--json'], { stdin: JSON.stringify(add) })
    expect(exitCode).toBe(3)
    expect(jsonLines(stderr)).toMatchObject([{ code: 'CONNECTION_FAILED', hint: containing('serve --demo') }])
  })
})

describe('tasks, task and instances', () => {
  it('list the tasks of the server, newest first', async () => {
    const { submit, run: ask } = await startCommandLine()
    await submit(add)
    await submit(bad)
    const { stdout } = await ask(['tasks', 'list'])
    const [head, ...rows] = stdout.trimEnd().split('\n')
    expect(head).toMatch(/^ID +STATUS +DONE +INSTANCE +AGE +NAME$/)
    expect(rows).toEqual([
      matching(/^task_\S+ +failed +1\/2 +calc +\ds +Bad$/),
      matching(/^task_\S+ +completed +1\/1 +calc +\ds +Add$/),
    ])
    const failed = await ask(['tasks', 'list', '--status', 'failed', '--json'])
    expect(jsonLines(failed.stdout)).toMatchObject([{ name: 'Bad', status: 'failed' }])
    expect((await (await startCommandLine()).run(['tasks', 'list'])).stderr).toBe('The server has no tasks.\n')
    expect(await ask(['tasks', 'list', '--instance', 'x'])).toMatchObject({
      stdout: '',
      stderr: 'The server has no task that matches.\n',
    })
    expect(await ask(['tasks', 'list', '--limit', '1', '--json'])).toMatchObject({
      stdout: matching(/^.+\n$/),
    })
  })

  it.each([
    [['tasks', 'list', '--status', 'odd'], '--status: got "odd", expected one of queued, running'],
    [['tasks', 'list', '--limit', '-1'], '--limit: got "-1", expected an integer from 1 to 100000'],
    [['tasks', 'watch', '--interval', 'often'], '--interval: got "often", expected an integer from 50'],
    [['instances', '--url', 'ftp://x'], 'url'],
  ])('reject %j before anything is sent', async (args, message) => {
    expect(await run(args)).toMatchObject({ exitCode: 2, stdout: '', stderr: containing(message) })
  })

  it('end a task by a prefix of its id, once', async () => {
    const { submit, run: ask } = await startCommandLine()
    const slow = { task_name: 'Slow', commands: [{ tool_name: 'slow', args: { seconds: 60, steps: 1 } }] }
    const id = (await submit(slow, ['--detach'])).stdout.trim()
    const watching = ask(['tasks', 'watch', id])
    expect(await ask(['tasks', 'cancel', id.slice(0, -1)])).toMatchObject({
      exitCode: 0,
      stdout: `${id} was cancelled.\n`,
    })
    expect(await ask(['tasks', 'cancel', id])).toMatchObject({ exitCode: 5, stdout: `${id} had already ended.\n` })
    expect(await ask(['tasks', 'cancel', id, '--json'])).toMatchObject({
      stdout: `{"task_id":"${id}","cancelled":false}\n`,
    })
    expect(await watching).toMatchObject({ exitCode: 5 })
    expect(await ask(['tasks', 'watch', id])).toMatchObject({ exitCode: 5, stderr: containing(`${id} cancelled`) })
  })

  it('end nothing when no task has the prefix, or several', async () => {
    const { submit, run: ask } = await startCommandLine()
    await submit(add)
    await submit(add)
    expect(await ask(['tasks', 'cancel', 'task_'])).toMatchObject({
      exitCode: 4,
      stderr: containing('could be'),
    })
    expect(await ask(['tasks', 'cancel', 'x'])).toMatchObject({ exitCode: 4, stderr: containing('no task x') })
    expect(await ask(['tasks', 'watch', 'x'])).toMatchObject({ exitCode: 4, stderr: containing('tasks list') })
  })

  it('list instances with their tools', async () => {
    const { run: ask } = await startCommandLine()
    expect((await ask(['instances'])).stdout).toBe(
      'ID    KIND   CONNECTED  QUEUED  TOOLS\ncalc  local  yes        0       add, echo, slow\n',
    )
    expect(jsonLines((await ask(['instances', '--json'])).stdout)).toMatchObject([{ id: 'calc', isConnected: true }])
    const empty = await startCommandLine({ instances: [] })
    expect(await empty.run(['instances'])).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: containing('--instance'),
    })
  })
})

describe('the program', () => {
  it.each([
    [['--help']],
    [['submit', '--help']],
    [['serve', '--help']],
    [['tasks', 'watch', '--help']],
    [['tasks', 'show', '--help']],
    [['tasks', 'history', '--help']],
    [['tasks', 'list', '--help']],
    [['tasks', 'cancel', '--help']],
    [['instances', '--help']],
  ])('has help with examples: %j', async (args) => {
    const { exitCode, stdout, stderr } = await run(args)
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toContain('Examples:\n  $ agent-tasks ')
  })

  it('does not offer to install whatever has the name of the package', async () => {
    expect((await run(['mcp', '--help'])).stdout).toContain('-- npx --no-install agent-tasks mcp')
  })

  it('prints its version', async () => {
    expect(await run(['--version'])).toEqual({ exitCode: 0, stdout: '1.2.3\n', stderr: '' })
  })

  it.each([[['nope']], [['submit']], [['instances', '--odd']]])('exits with 2 at %j', async (args) => {
    const { exitCode, stdout, stderr } = await run(args)
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^error: .*\nRun it with --help/)
  })
})
