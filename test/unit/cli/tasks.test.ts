// `agent-tasks tasks` on a page, on a store and on a server: what each source lists, shows, cancels and watches.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { folderName } from '../../../src/features/output/run-files.js'
import type { ListedTask } from '../../../src/cli/tasks/listed-task.js'
import { sqliteStore } from '../../../src/store/index.js'
import { startPageHost } from '../../support/page-host.js'
import { storedTask } from '../store/stored-task.js'
import { begin, containing, jsonLines, matching, run, signal, startCommandLine } from './command-line.js'
import { waitFor } from '../../support/wait-for.js'

async function startHost() {
  const host = await startPageHost()
  onTestFinished(() => host.close())
  const env = { AGENT_TASKS_PAGE: host.url }
  return { ...host, ask: (...args: string[]) => run(['tasks', ...args], { env }), env }
}

const idOf = (key: string): string => key.slice(key.indexOf(':') + 1)

describe('with a page', () => {
  it('list has the tasks of both kinds, newest first, and filters them', async () => {
    const { launch, submit, manager, taskManager, ask, url } = await startHost()
    const sleeper = idOf(await launch('sleeper', 'dream'))
    await waitFor(() => expect(Date.now()).toBeGreaterThan(manager.getTask(sleeper)?.launchedAt ?? Infinity))
    const add = idOf(submit('desk', 'add', { a: 2, b: 3 }))
    await waitFor(() => expect(taskManager.getTask(add)?.status).toBe('completed'))
    const { exitCode, stdout, stderr } = await run(['tasks', 'list', '--page', url])
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^TASK +STATUS +SUBAGENT +OWNER +DELIVERY +AGE +GOAL\n/)
    expect(stdout).toMatch(/ running +sleeper +\S+ .*dream\n/)
    expect(stdout).toMatch(/ completed +\(commands 1\/1\) +desk .*add\n/)
    const list = async (...args: string[]) => jsonLines((await ask('list', '--json', ...args)).stdout)
    await waitFor(() => expect(Date.now()).toBeGreaterThan(taskManager.getTask(add)?.createdAt ?? Infinity))
    const writer = idOf(await launch('writer', 'a letter'))
    expect((await list()).map((task) => (task as { task_id: string }).task_id)).toEqual([writer, add, sleeper])
    expect(await list('--kind', 'async', '--subagent', 'sleeper')).toMatchObject([
      { task_id: sleeper, kind: 'async', subagent: 'sleeper', goal: 'dream', status: 'running' },
    ])
    expect(await list('--instance', 'desk')).toMatchObject([{ task_id: add, name: 'add', totalCommands: 1 }])
    expect(await list('--subagent', 'sleeper', '--status', 'running')).toHaveLength(1)
    expect(await list('--status', 'failed')).toEqual([])
    expect(await list('--limit', '1')).toHaveLength(1)
    expect((await ask('list', '--owner', 'nobody')).stderr).toBe('The host of the page has no task that matches.\n')
  })

  it('show prints the facts of a task and its result', async () => {
    const { launch, submit, taskManager, manager, ask } = await startHost()
    const long = 'x'.repeat(100_000)
    const writer = idOf(await launch('writer', `letter: {"note":"${long}"}`))
    await waitFor(() => expect(manager.getTask(writer)?.status).toBe('completed'))
    const shown = await ask('show', writer.slice(0, -2))
    expect(shown).toMatchObject({ exitCode: 0, stdout: containing('Done: letter') })
    expect(shown).toMatchObject({ stdout: matching(/Status +completed\n[^]*Subagent +writer\n/), stderr: '' })
    expect(jsonLines((await ask('show', writer, '--json')).stdout)).toMatchObject([
      { task_id: writer, subagent: 'writer', goal: `letter: {"note":"${long}"}`, result: { note: long } },
    ])
    const failing = idOf(await launch('clumsy', 'build'))
    await waitFor(() => expect(manager.getTask(failing)?.status).toBe('failed'))
    expect(await ask('show', failing)).toMatchObject({ stdout: containing('The tower has fallen'), stderr: '' })
    const add = idOf(submit('desk', 'add', { a: 2, b: 3 }))
    await waitFor(() => expect(taskManager.getTask(add)?.status).toBe('completed'))
    expect(await ask('show', add)).toMatchObject({
      stdout: matching(/ 1\. add \{"a":2,"b":3\} completed\n.*5/),
    })
  })

  it('launch starts a task of a subagent, and prints its id', async () => {
    const { manager, ask, url } = await startHost()
    const { exitCode, stdout, stderr } = await ask('launch', 'writer', 'a letter')
    expect([exitCode, stderr]).toEqual([0, ''])
    const id = stdout.trim()
    await waitFor(() => expect(manager.getTask(id)).toMatchObject({ status: 'completed', goalPrompt: 'a letter' }))
    const given = ['--context', '{"region":"eu"}', '--owner', 'ann', '--timeout-seconds', '90', '--page', url, '--json']
    const [launched] = jsonLines((await run(['tasks', 'launch', 'shipper', 'send', ...given])).stdout)
    const shipped = (launched as { task_id: string }).task_id
    await waitFor(() => expect(manager.getTask(shipped)?.status).toBe('completed'))
    expect(manager.getTask(shipped)).toMatchObject({
      owner: 'ann',
      timeoutMs: 90_000,
      output: { region: 'eu' },
    })
    expect(await ask('launch', 'nobody', 'x')).toMatchObject({ exitCode: 4, stderr: containing('expected one of') })
    expect(await ask('launch', 'shipper', 'x', '--context', '[]')).toMatchObject({
      exitCode: 2,
      stderr: containing('a JSON object'),
    })
    expect(await run(['tasks', 'launch', 'writer', 'x'])).toMatchObject({
      exitCode: 2,
      stderr: containing('the link of a page'),
    })
  })

  it('F10: deadline and conclude change a running task', async () => {
    const { launch, manager, ask } = await startHost()
    const id = idOf(await launch('sleeper', 'dream'))
    await waitFor(() => expect(manager.getTask(id)?.status).toBe('running'))
    expect(await ask('deadline', id, '120')).toEqual({
      exitCode: 0,
      stdout: `${id} has another deadline.\n`,
      stderr: '',
    })
    expect(manager.getTask(id)?.timeoutMs).toBeGreaterThanOrEqual(120_000)
    expect(await ask('deadline', id, 'none', '--json')).toMatchObject({ exitCode: 0 })
    expect(manager.getTask(id)).not.toHaveProperty('timeoutMs')
    expect(await ask('deadline', id, 'soon')).toMatchObject({ exitCode: 2, stderr: containing('a number of seconds') })
    expect(await ask('conclude', id, '--reason', 'late')).toMatchObject({
      exitCode: 0,
      stdout: `${id} was asked to conclude.\n`,
    })
    expect(await ask('conclude', id)).toMatchObject({ exitCode: 4, stderr: containing('is concluding already') })
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'tasks.db')
    const store = sqliteStore(file)
    store.open()
    store.close()
    const inStore = await run(['tasks', 'conclude', id, '--store', file])
    expect(inStore).toMatchObject({ exitCode: 2, stderr: containing('cannot change tasks') })
  })

  it('show has the question of a task that asks', async () => {
    const { launch, manager, ask } = await startHost()
    const asker = idOf(await launch('asker', 'ship'))
    await waitFor(() => expect(manager.getTask(asker)?.questions).toHaveLength(1))
    expect(jsonLines((await ask('list', '--json')).stdout)).toMatchObject([{ status: 'running', state: 'asking' }])
    const { stdout } = await ask('show', asker)
    expect(stdout).toMatch(/Status +asking\n[^]*Question +question-1: Where shall it go\? .* chosen\.\n/)
    expect(stdout).not.toContain('schema')
    const list = async (status: string) => jsonLines((await ask('list', '--json', '--status', status)).stdout)
    for (const status of ['asking', 'running']) expect(await list(status)).toMatchObject([{ task_id: asker }])
    expect(await list('interrupted')).toEqual([])
  })

  it('cancel cancels an async task, with a reason, once', async () => {
    const { launch, manager, ask } = await startHost()
    const id = idOf(await launch('sleeper', 'dream'))
    expect(await ask('cancel', id, '--reason', 'it is late')).toEqual({
      exitCode: 0,
      stdout: `${id} was cancelled.\n`,
      stderr: '',
    })
    expect(manager.getTask(id)).toMatchObject({ status: 'cancelled', cancelReason: 'it is late' })
    expect(await ask('cancel', id, '--json')).toMatchObject({
      exitCode: 5,
      stdout: `{"task_id":"${id}","cancelled":false}\n`,
    })
    expect(await ask('cancel', 'nope')).toMatchObject({ exitCode: 4, stderr: containing('There is no task nope.') })
  })

  it('cancel takes the task of an ambiguous prefix that has not ended', async () => {
    const { launch, manager, ask } = await startHost()
    const ids = [idOf(await launch('sleeper', 'a')), idOf(await launch('sleeper', 'b'))] as const
    const prefix = ids[0].slice(0, 2)
    expect(ids[1].startsWith('sleeper')).toBe(ids[0].startsWith('sleeper'))
    expect(await ask('cancel', 'sleeper')).toMatchObject({ exitCode: 4, stderr: containing('could be') })
    manager.cancelTask(ids[0])
    expect(await ask('cancel', prefix)).toMatchObject({ exitCode: 0, stdout: `${ids[1]} was cancelled.\n` })
  })

  it('watch follows one task to its end, and prints its result', async () => {
    const { launch, manager, env } = await startHost()
    const id = idOf(await launch('listener', 'listen'))
    const watch = begin(['tasks', 'watch', id], { env })
    await waitFor(() => expect(watch.written.stdout).toMatch(/ running\n$/))
    manager.sendToTask(id, 'hello')
    expect(await watch.ended).toMatchObject({
      exitCode: 0,
      stdout: matching(/ running\nHeard: hello\n$/),
      stderr: matching(/ completed\n$/),
    })
    const failed = idOf(await launch('clumsy', 'build'))
    expect(await run(['tasks', 'watch', failed, '--json'], { env })).toMatchObject({
      exitCode: 1,
      stdout: containing('"error":"The tower has fallen"'),
    })
  })

  it('watch prints each change of all tasks as it happens, and ends with 3 when the page does', async () => {
    const { launch, manager, env, stopPage } = await startHost()
    const watch = begin(['tasks', 'watch', '--json'], { env })
    const id = idOf(await launch('listener', 'listen'))
    await waitFor(() => expect(watch.written.stdout).toContain('"running"'))
    manager.sendToTask(id, 'hello')
    await waitFor(() => expect(watch.written.stdout).toContain('"completed"'))
    await stopPage()
    const { exitCode, stdout, stderr } = await watch.ended
    const lost = { code: 'CONNECTION_LOST', hint: containing('use its new link') }
    expect([exitCode, jsonLines(stderr)]).toMatchObject([3, [lost]])
    expect(jsonLines(stdout).at(-1)).toMatchObject({ task_id: id, subagent: 'listener', goal: 'listen' })
  })

  it('watch draws a table on a terminal until Ctrl-C', async () => {
    const { launch, env } = await startHost()
    await launch('sleeper', 'dream')
    const watch = begin(['tasks', 'watch'], { env, isTTY: true })
    await waitFor(() => expect(watch.written.stdout).toMatch(/running +sleeper/))
    signal('SIGINT')
    expect(await watch.ended).toMatchObject({ exitCode: 130, stderr: '' })
  })

  it('watch draws the 20 newest tasks', async () => {
    const { manager, env } = await startHost()
    for (let at = 0; at < 25; at += 1) {
      manager.registerTask({ id: `t${at}`, subagentName: 'host', goalPrompt: `goal ${at}.` })
    }
    const watch = begin(['tasks', 'watch'], { env, isTTY: true })
    await waitFor(() => expect(watch.written.stdout).toMatch(/goal \d+\./))
    signal('SIGINT')
    await watch.ended
    expect(new Set(watch.written.stdout.match(/goal \d+\./g)).size).toBe(20)
  })

  it('names a wrong link without its token, and a token of another run', async () => {
    const { url } = await startHost()
    const [base = ''] = url.split('#')
    expect(await run(['tasks', 'list', '--page', 'x#token=secret'])).toMatchObject({
      exitCode: 2,
      stderr:
        '--page: got "x", expected the link of a page with its token, as in http://127.0.0.1:3320/#token=….\n'.replace(
          /^/,
          'agent-tasks: ',
        ),
    })
    for (const command of [['list'], ['show', 'x']]) {
      const { exitCode, stderr } = await run(['tasks', ...command, '--page', `${base}#token=${'secret'.repeat(4)}`])
      expect([exitCode, stderr]).toEqual([4, containing('does not accept the token of this link')])
      expect(stderr).not.toContain('secret')
    }
    expect(await run(['tasks', 'list', '--page', 'http://127.0.0.1:1/#token=abc'])).toMatchObject({
      exitCode: 3,
      stderr:
        'agent-tasks: Cannot reach the page at http://127.0.0.1:1.\n' +
        'Start the host with its page again, and use its new link (AGENT_TASKS_PAGE).\n',
    })
  })
})

describe('with a store', () => {
  async function filled() {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-cli-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'tasks.db')
    const store = sqliteStore(file)
    store.open()
    const record = { subagentName: 'writer', goalPrompt: 'a letter' }
    await store.write([
      { table: 'tasks', put: storedTask('old', { launchedAt: 1, record: { ...record, output: { n: 1 } } }) },
      // Only its idempotency key is still known.
      {
        table: 'commandTasks',
        put: { id: 'gone', instanceId: '', status: 'forgotten', seq: 1, createdAt: 3, record: {} },
      },
      {
        table: 'tasks',
        put: storedTask('new', { launchedAt: 2, status: 'running', delivery: 'none', record }),
      },
    ])
    onTestFinished(() => store.close())
    return { file, store }
  }

  it('list and show read the tasks while their owner runs', async () => {
    const { file } = await filled()
    const list = await run(['tasks', 'list', '--store', file, '--json'])
    expect(jsonLines(list.stdout)).toMatchObject([
      { task_id: 'new', status: 'running', subagent: 'writer', goal: 'a letter' },
      { task_id: 'old', status: 'completed' },
    ])
    expect(list.stdout).not.toContain('interrupted')
    const shown = { exitCode: 0, stdout: matching(/^Task +old\n[^]*\n\{"n":1\}\n$/), stderr: '' }
    expect(await run(['tasks', 'show', 'old', '--store', file])).toMatchObject(shown)
    expect(await run(['tasks', 'watch', 'old', '--store', file])).toMatchObject({
      exitCode: 0,
      stdout: '{"n":1}\n',
      stderr: containing('old '),
    })
  })

  it('list and show what ran as interrupted when its host has ended', async () => {
    const { file, store } = await filled()
    const { record } = storedTask('x')
    const schema = { properties: { answer: { enum: ['a', 'b'] } } }
    const questions = [{ id: 'question-1', message: 'Which?', schema, askedAt: 1 }, 'odd']
    const waits = { launchedAt: 3, delivery: 'none', record: { ...record, questions } } as const
    await store.write([{ table: 'tasks', put: storedTask('waits', { ...waits, status: 'queued' }) }])
    store.close()
    const ask = (...args: string[]) => run(['tasks', ...args, '--store', file])
    const tasks = jsonLines((await ask('list', '--json')).stdout)
    expect(tasks).toMatchObject([{ status: 'queued' }, { status: 'running', state: 'interrupted' }, { task_id: 'old' }])
    expect(tasks[0]).not.toHaveProperty('state')
    expect(tasks[2]).not.toHaveProperty('state')
    expect(jsonLines((await ask('list', '--json', '--status', 'interrupted')).stdout)).toMatchObject([
      { task_id: 'new' },
    ])
    expect((await ask('list')).stdout).toMatch(/^new +interrupted /m)
    expect((await ask('show', 'new')).stdout).toMatch(/^Status +interrupted$/m)
    expect((await ask('show', 'waits')).stdout).toMatch(/^Question +question-1: Which\? \(a, b\)$/m)
  })

  it('F4: list and show have the reason of a cancellation', async () => {
    const { file, store } = await filled()
    const record = { subagentName: 'writer', goalPrompt: 'a letter', cancelReason: 'it is late' }
    await store.write([{ table: 'tasks', put: storedTask('stopped', { status: 'cancelled', record }) }])
    const ask = (...args: string[]) => run(['tasks', ...args, '--store', file])
    expect((await ask('show', 'stopped')).stdout).toMatch(/^Reason +it is late$/m)
    for (const args of [
      ['show', 'stopped'],
      ['list', '--status', 'cancelled'],
    ]) {
      expect(jsonLines((await ask(...args, '--json')).stdout)).toMatchObject([{ cancelReason: 'it is late' }])
    }
  })

  it('the command of a command task that ran is running, and interrupted when its host has ended, as the task is', async () => {
    const { file, store } = await filled()
    const command = { tool_name: 'add', intention: '', args: {}, status: 'pending' }
    const commands = [1, 2, 3].map((id) => ({ ...command, id: `c${id}` }))
    const record = { id: 'sum', name: 'Sum', intention: '', instanceId: 'desk', status: 'running', createdAt: 3 }
    const row = { id: 'sum', instanceId: 'desk', status: 'running', seq: 2, createdAt: 3 }
    await store.write([
      {
        table: 'commandTasks',
        put: { ...row, record: { ...record, startedAt: 4, currentCommandIndex: 0, commands } },
      },
      {
        table: 'commands',
        put: { id: 'sum/0', taskId: 'sum', index: 0, outcome: { status: 'success', startedAt: 4, completedAt: 5 } },
      },
    ])
    const ask = (...args: string[]) => run(['tasks', ...args, '--kind', 'command', '--store', file])
    const show = async () => (await run(['tasks', 'show', 'sum', '--store', file])).stdout
    expect((await ask('list')).stdout).toMatch(/^sum +running +1\/3 /m)
    expect(await show()).toMatch(/1\. add .* success\n +2\. add .* running\n +3\. add .* pending\n/)
    store.close()
    for (const status of [[], ['--status', 'interrupted']]) {
      expect((await ask('list', ...status)).stdout).toMatch(/^sum +interrupted +1\/3 /m)
    }
    expect(jsonLines((await ask('list', '--json')).stdout)).toMatchObject([{ status: 'running', state: 'interrupted' }])
    expect(await show()).toMatch(/1\. add .* success\n +2\. add .* interrupted\n +3\. add .* pending\n/)
  })

  it('a run that goes on without its host is running, and interrupted when nothing of it is left', async () => {
    const { file, store } = await filled()
    const record = { subagentName: 'writer', goalPrompt: 'a letter' }
    const dead = { identity: { pid: 2 ** 22 + 1, start: '1', boot: 'x' }, token: 'x' }
    const put = (id: string, run: object) =>
      store.write([
        {
          table: 'tasks',
          put: storedTask(id, { status: 'running', delivery: 'none', record, run: { params: {}, key: 'k', ...run } }),
        },
      ])
    await put('elsewhere', {})
    await put('gone', { program: dead })
    await put('finished', { program: dead })
    const folder = join(`${file}-runs`, folderName({ id: 'finished', launchedAt: 0, attempt: 1 }))
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'exit'), '0\n')
    store.close()
    const tasks = jsonLines((await run(['tasks', 'list', '--json', '--store', file])).stdout) as ListedTask[]
    const states = Object.fromEntries(tasks.map(({ task_id, status, state }) => [task_id, state ?? status]))
    expect(states).toMatchObject({ elsewhere: 'running', finished: 'running', gone: 'interrupted', new: 'interrupted' })
  })

  it('cancel says that only a running host can do it', async () => {
    const { file } = await filled()
    expect(await run(['tasks', 'cancel', 'new', '--store', file])).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: containing('expected a running host, because a store can only be read: use --page, or --url'),
    })
  })

  it('a file that is not there is an error', async () => {
    expect(await run(['tasks', 'list', '--store', '/nowhere/tasks.db'])).toMatchObject({
      exitCode: 2,
      stderr: containing('/nowhere/tasks.db: there is no such file'),
    })
  })
})

describe('with a server', () => {
  const add = { task_name: 'Add', commands: [{ tool_name: 'add', args: { a: 2, b: 3 } }] }

  it('show has the commands of a task, with arguments and results', async () => {
    const { submit, run: ask } = await startCommandLine()
    const id = (await submit(add, ['--detach'])).stdout.trim()
    await ask(['tasks', 'watch', id])
    expect(await ask(['tasks', 'show', id])).toMatchObject({
      exitCode: 0,
      stdout: matching(/Status +completed 1\/1\n[^]*Instance +calc\n[^]*1\. add {"a":2,"b":3} success\n/),
      stderr: '',
    })
    expect(jsonLines((await ask(['tasks', 'show', id, '--json'])).stdout)).toMatchObject([
      { task_id: id, kind: 'command', commands: [{ tool_name: 'add', args: { a: 2, b: 3 }, result: {} }] },
    ])
    const events = jsonLines((await ask(['tasks', 'watch', id, '--json'])).stdout)
    expect(events.at(-1)).toMatchObject({ task_id: id, type: 'task_complete' })
    expect(events.at(-1)).not.toHaveProperty('taskId')
  })

  it('every view counts the commands that have succeeded or failed, and shows the codes of errors', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-cli-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'tasks.db')
    const { server, submit, run: ask } = await startCommandLine({ store: sqliteStore(file) })
    const [added, nope, slow] = ['add', 'nope', 'slow'].map((tool_name) => ({ tool_name, args: { a: 1, b: 2 } }))
    const start = async (...commands: unknown[]) =>
      (await submit({ task_name: 'x', commands }, ['--detach'])).stdout.trim()
    const failed = await start(added, nope, added)
    await waitFor(() => expect(server.taskManager.getTask(failed)?.status).toBe('failed'))
    await start({ ...slow, args: { seconds: 60 } })
    const waiting = await start(added)
    const skipped = await start(added)
    await ask(['tasks', 'cancel', skipped])
    for (const where of [[], ['--store', file]]) {
      const { stdout } = await ask(['tasks', 'list', ...where])
      for (const [id, place] of [
        [failed, 'failed 2/3'],
        [waiting, 'queued 0/1'],
        [skipped, 'cancelled 0/1'],
      ]) {
        expect(stdout.replaceAll(/ +/g, ' ')).toContain(`${id} ${place} `)
        expect((await ask(['tasks', 'show', String(id), ...where])).stdout).toContain(`Status    ${place}\n`)
      }
      const shown = (await ask(['tasks', 'show', failed, ...where])).stdout
      expect(shown).toMatch(/^Error +UNKNOWN_TOOL: Unknown tool: "nope"/m)
      expect(shown).toMatch(/^ {2}2\. nope .* error: UNKNOWN_TOOL: Unknown tool: "nope"/m)
      expect(jsonLines((await ask(['tasks', 'show', failed, '--json', ...where])).stdout)).toMatchObject([
        { finishedCommands: 2, errorCode: 'UNKNOWN_TOOL', commands: [{}, { errorCode: 'UNKNOWN_TOOL' }, {}] },
      ])
    }
  })

  it('refuses what concerns async tasks alone', async () => {
    const { run: ask } = await startCommandLine()
    for (const args of [
      ['list', '--kind', 'async'],
      ['list', '--owner', 'main'],
      ['list', '--subagent', 'x'],
      ['cancel', 'x', '--reason', 'why'],
    ]) {
      const { exitCode, stderr } = await ask(['tasks', ...args])
      expect([exitCode, stderr]).toEqual([2, containing('--page')])
    }
    expect((await ask(['tasks', 'list', '--subagent', 'x'])).stderr).toBe(
      'agent-tasks: --subagent needs --page or --store: a server has command tasks only.\n',
    )
    expect(await ask(['tasks', 'list', '--status', 'asking'])).toMatchObject({
      exitCode: 2,
      stderr: 'agent-tasks: --status asking needs --page or --store: a server does not report this state.\n',
    })
    expect(await ask(['tasks', 'list', '--url', 'http://x:1', '--store', 'y'])).toMatchObject({
      exitCode: 2,
      stderr: containing('--store: got "y", expected only one of --url, --page and --store.'),
    })
    expect(await ask(['tasks', 'list', '--kind', 'odd'])).toMatchObject({
      stderr: containing('--kind: got "odd", expected one of async, command.'),
    })
  })
})

it('history has the command tasks that a server still keeps, and none that has not ended', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'tasks.db')
  const { submit } = await startCommandLine({ tasks: { store: file } })
  const task = (tool_name: string, args: object) => ({ task_name: tool_name, commands: [{ tool_name, args }] })
  const [id] = (await submit(task('add', { a: 2, b: 3 }))).stderr.split(' ')
  await submit(task('slow', { seconds: 60, steps: 1 }), ['--detach'])
  const { stdout } = await run(['tasks', 'history', '--store', file, '--json'])
  const ended = { task_id: id, kind: 'command', name: 'add', instanceId: 'calc', status: 'completed' }
  expect(jsonLines(stdout)).toEqual([expect.objectContaining(ended)])
})
