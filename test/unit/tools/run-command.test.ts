/** The tool run_command. The programs are real. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, relative } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, type Subagent, type ToolContext } from 'agent-tasks'
import { memoryStore, type Store } from 'agent-tasks/store'
import { isAlive, until } from '../../support/lifelines.js'
import { runs } from '../../../src/async-tasks/run-plan.js'
import type { CommandsOptions } from '../../../src/host/agent-tasks-options.js'
import type { CompletedTaskInfo } from '../../../machines/records.js'

type Options = Partial<CommandsOptions> & {
  readonly store?: Store
  readonly maxAsyncTasks?: number
  readonly subagents?: Readonly<Record<string, Subagent>>
}

function setUp({ store, maxAsyncTasks, subagents, ...commands }: Options = {}) {
  const tasks = createAgentTasks({
    ...(subagents && { subagents }),
    ...(store && { store }),
    ...(maxAsyncTasks !== undefined && { maxAsyncTasks }),
    commands: commands.shell === true ? commands : { allow: ['sh', 'echo'], ...commands },
  })
  onTestFinished(() => tasks.dispose())
  const manager = tasks.getAsyncTaskManager()
  const { run_command, check_async_tasks, wait_for_async_tasks } = tasks.tools
  const sh = (line: string, more: object = {}, context: ToolContext = {}) =>
    run_command.execute({ command: 'sh', args: ['-c', line], ...more }, context)
  const launch = async (line: string, more: object = {}): Promise<string> =>
    (await sh(line, { async: true, ...more })).metadata?.['agentId'] as string
  const wait = async (): Promise<string> => (await wait_for_async_tasks.execute({})).llmContent
  const printed = (id: string, text: string) => until(() => manager.readOutput(id)?.text.includes(text) === true)
  return { ...tasks, manager, run_command, check_async_tasks, sh, launch, wait, printed }
}

function newFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-run-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const lastOf = (tasks: { readonly manager: { getAllTasks(): unknown[] } }) => tasks.manager.getAllTasks().at(-1)

describe('a command in place', () => {
  it('F1: returns what it printed, and its record says what ran and how it ended', async () => {
    const host = setUp()
    const { llmContent, error, metadata } = await host.sh('echo hello')
    const task = lastOf(host) as CompletedTaskInfo
    expect(JSON.parse(llmContent)).toEqual({
      agent_id: metadata?.['agentId'],
      command: "sh -c 'echo hello'",
      exit_code: 0,
      emitted_vars: {},
      final_message: 'hello',
    })
    expect(error).toBeUndefined()
    expect(task).toMatchObject({
      kind: 'command',
      subagentName: 'sh',
      goalPrompt: "sh -c 'echo hello'",
      command: ['sh', '-c', 'echo hello'],
      status: 'completed',
      exitCode: 0,
      pid: expect.any(Number) as number,
      delivery: 'delivered',
    })
    expect(task).not.toHaveProperty('outputTail')
  })

  it('F1: that fails is a failed task, whose message has the exit code and the ends of stderr and stdout', async () => {
    const { sh, check_async_tasks } = setUp()
    const { llmContent, error, metadata } = await sh('echo made; echo broken >&2; exit 3')
    expect(JSON.parse(llmContent)).toEqual({
      agent_id: metadata?.['agentId'],
      status: 'failed',
      command: "sh -c 'echo made; echo broken >&2; exit 3'",
      exit_code: 3,
      error: expect.stringMatching(/^Command ".*sh" exited with code 3\. The end of its stderr:\nbroken$/) as string,
      error_name: 'ProcessError',
      error_code: 'PROCESS_FAILED',
      output_tail: expect.stringContaining('made') as string,
    })
    expect(error?.type).toBe('execution_failed')
    const peek = await check_async_tasks.execute({ task_id: metadata?.['agentId'] })
    expect(peek.metadata).toMatchObject({ kind: 'command', exitCode: 3, command: ['sh', '-c', expect.any(String)] })
  })

  it('F1: has what it printed to stderr as well, which is not in its result', async () => {
    const { sh } = setUp()
    const { llmContent } = await sh('echo warned >&2')
    expect(JSON.parse(llmContent)).toMatchObject({ final_message: '', output_tail: 'warned' })
  })

  it('F2: passes its output on while it runs', async () => {
    const { sh } = setUp()
    let written = ''
    await sh('echo one; echo two', {}, { onUpdate: ({ text }) => (written += text) })
    expect(written).toBe('one\ntwo\n')
  })

  it('F1: is stopped with its call', async () => {
    const host = setUp()
    const call = new AbortController()
    const result = host.sh('echo up; exec sleep 60', {}, { signal: call.signal, onUpdate: () => call.abort() })
    expect((await result).error?.type).toBe('cancelled')
    const { pid = 0, ...task } = lastOf(host) as CompletedTaskInfo
    expect(task).toMatchObject({ status: 'cancelled', outputTail: 'up' })
    await host.dispose()
    expect(isAlive(pid)).toBe(false)
  })

  it('F1: that could not be started is a failed task', async () => {
    const { run_command } = setUp({ allow: ['no-such-program'] })
    const { error } = await run_command.execute({ command: 'no-such-program' })
    expect(error?.message).toContain('did not start: it was not found (ENOENT)')
  })
})

describe('a command in the background', () => {
  it('F1: is shown with the end of its output, and its result is delivered as that of any task', async () => {
    const { launch, printed, check_async_tasks, wait, sh } = setUp()
    const id = await launch('echo "line 1"; echo "[line] 2"; read -r x < /dev/null; exec sleep 60')
    await printed(id, '2\n')
    const { llmContent: list } = await check_async_tasks.execute({})
    expect(list).toContain(String.raw` - output: "[line] 2"`)
    const { metadata } = await check_async_tasks.execute({ task_id: id })
    expect(metadata).toMatchObject({
      status: 'running',
      pid: expect.any(Number) as number,
      outputTail: 'line 1\n[line] 2',
    })
    await check_async_tasks.execute({ task_id: id, action: 'cancel' })
    const { llmContent } = await sh('echo quick', { async: true })
    expect(llmContent).toMatch(
      /^Async task launched: command sh -c 'echo quick' \(ID: sh-\w+\)\. Task is running in background\./,
    )
    expect(await wait()).toContain('"final_message": "quick"')
  })

  it('F1: cannot forge a line of a list', async () => {
    const { launch, printed, check_async_tasks } = setUp()
    const id = await launch(String.raw`printf 'one\rtwo\033[2J"x'; exec sleep 60`)
    await printed(id, 'x')
    const { llmContent } = await check_async_tasks.execute({})
    expect(llmContent.split('\n').at(-1)).toContain(String.raw` - output: "\"x"`)
  })

  it('F1: exceeds its deadline as any task does, with what it had written', async () => {
    const { launch, wait, manager } = setUp()
    const id = await launch('echo up; exec sleep 60', { timeout_seconds: 0.2 })
    expect(await wait()).toContain('Task timed out')
    expect(manager.getTask(id)).toMatchObject({ status: 'failed', signal: 'SIGTERM' })
    expect(JSON.stringify(manager.getTask(id))).toContain('up')
  })
})

describe('the limit of commands', () => {
  it('F1: is their own: tasks take no slot of theirs, and calls in place take one', async () => {
    const { launch, sh, manager } = setUp({ maxCommands: 1, maxAsyncTasks: 0 })
    const id = await launch('exec sleep 60')
    for (const async of [true, false]) {
      expect(await sh('echo', { async })).toMatchObject({
        llmContent:
          'Max commands (1) reached. Wait until one has ended (wait_for_async_tasks), or cancel one (check_async_tasks with action "cancel").',
        error: { type: 'limit_reached' },
        metadata: { max: 1 },
      })
    }
    expect(manager.canLaunchAsync().allowed).toBe(false)
    manager.cancelTask(id)
    await until(() => manager.registry.use(runs).unsettled.size === 0)
    expect((await sh('echo free')).error).toBeUndefined()
  })

  it('F1: is 5, or what the host says', () => {
    expect(setUp().manager.getMaxCommands()).toBe(5)
    expect(setUp({ maxCommands: -1 }).manager.getMaxCommands()).toBe(-1)
    expect(() => setUp({ maxCommands: 1.5 })).toThrow('Setting commands.maxCommands: got 1.5, expected an integer >= 0')
  })
})

describe('what a call may name', () => {
  it('F1: a program is one of those that are allowed, exactly', async () => {
    const host = setUp()
    for (const command of ['env', './sh', 'SH', 'sh ', '/bin/sh', '../sh', 'sh\n']) {
      const { error } = await host.run_command.execute({ command })
      expect(error).toEqual({
        type: 'parameter_validation',
        message: `params.command: got ${JSON.stringify(command)}, expected one of "sh", "echo".`,
      })
    }
    expect(host.manager.getAllTasks()).toEqual([])
  })

  it('F1: a name is found in the PATH of the host alone', async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'echo'), '#!/bin/sh\nprintf fake\n', { mode: 0o755 })
    const { PATH = '' } = process.env
    onTestFinished(() => void (process.env['PATH'] = PATH))
    process.env['PATH'] = [relative('.', folder), '', PATH].join(delimiter)
    const { run_command } = setUp({ cwd: folder, env: ['PATH'] })
    const { llmContent } = await run_command.execute({ command: 'echo', args: ['real'], env: { PATH: folder } })
    expect(llmContent).toContain('"final_message": "real"')
  })

  it('F1: arguments are passed as they are', async () => {
    const { run_command } = setUp()
    const args = ['{goal}', '{id}', '$HOME', '*', "it's", '; exit 1']
    const { llmContent } = await run_command.execute({ command: 'echo', args })
    expect((JSON.parse(llmContent) as { final_message: string }).final_message).toBe(args.join(' '))
  })

  it('F1: a folder is within those of the host, also through links', async () => {
    const folder = newFolder()
    for (const name of ['in/sub', 'in-too', 'out']) mkdirSync(join(folder, name), { recursive: true })
    symlinkSync(join(folder, 'out'), join(folder, 'in/away'))
    symlinkSync(join(folder, 'in'), join(folder, 'link'))
    const { sh } = setUp({ cwd: [join(folder, 'link')] })
    const where = async (cwd?: string) => {
      const { error, llmContent } = await sh('pwd -P', cwd === undefined ? {} : { cwd })
      return error?.message ?? (JSON.parse(llmContent) as { final_message: string }).final_message
    }
    expect(await where()).toBe(join(folder, 'in'))
    expect(await where('sub')).toBe(join(folder, 'in/sub'))
    expect(await where(join(folder, 'in/sub/..'))).toBe(join(folder, 'in'))
    for (const cwd of ['..', 'away', '/', join(folder, 'in-too'), 'sub/../../out']) {
      expect(await where(cwd)).toBe(
        `params.cwd: got ${JSON.stringify(cwd)}, expected a folder within ${JSON.stringify(join(folder, 'link'))}.`,
      )
    }
    expect(await where('missing')).toBe('params.cwd: got "missing", expected a folder that exists.')
  })

  it('F1: variables are those that are named, and their values are stored nowhere', async () => {
    const store = memoryStore()
    const written: string[] = []
    const write = store.write.bind(store)
    store.write = (changes) => {
      written.push(JSON.stringify(changes))
      return write(changes)
    }
    const host = setUp({ store, env: ['TOKEN'] })
    const { llmContent } = await host.sh('test ${#TOKEN} = 12', { env: { TOKEN: 'secret-value' } })
    expect(llmContent).toContain('"exit_code": 0')
    expect(written.length).toBeGreaterThan(0)
    expect(written.join('')).not.toContain('secret-value')
    expect(JSON.stringify(host.manager.getAllTasks())).not.toContain('secret-value')

    const { error } = await host.sh('true', { env: { TOKEN: '', LD_PRELOAD: 'secret-value' } })
    expect(error?.message).toBe('params.env: got "LD_PRELOAD", expected only the variables "TOKEN".')
    expect((await setUp().sh('true', { env: { TOKEN: 'x' } })).error?.message).toBe(
      'params.env: got "TOKEN", expected no variables.',
    )
  })

  it.each([
    [{ command: '' }, 'params.command'],
    [{ command: 'sh', args: ['a\0b'] }, 'params.args[0]'],
    [{ command: 'sh', args: Array.from({ length: 1001 }, () => '') }, 'params.args'],
    [{ command: 'sh', args: ['x'.repeat(40_000), 'y'.repeat(40_000)] }, 'params: got 80002'],
    [{ command: 'sh', cwd: 'a\0' }, 'params.cwd'],
    [{ command: 'sh', timeout_seconds: 0 }, 'params.timeout_seconds'],
    [{ command: 'sh', shell: true }, 'shell'],
  ])('refuses what is wrong, by its field (%#)', async (params, field) => {
    const { run_command, manager } = setUp()
    const { error } = await run_command.execute(params)
    expect(error?.type).toBe('parameter_validation')
    expect(error?.message).toContain(field)
    expect(manager.getAllTasks()).toEqual([])
  })
})

describe('a command that is detached', () => {
  it('F14: goes on in the slot that it has, and its call returns with its id', async () => {
    const host = setUp({ maxCommands: 1 })
    const pending = host.sh('echo begun; sleep 60')
    const { id } = host.manager.getAllTasks()[0]!
    await host.printed(id, 'begun')
    expect(host.manager.getTask(id)?.isForeground).toBe(true)
    expect(host.detach(id)).toEqual({ detached: true })
    expect(await pending).toMatchObject({
      llmContent: expect.stringContaining(`Task ${id} continues in the background`) as string,
      metadata: { agentId: id, async: true },
    })
    expect((await host.sh('echo two')).error?.type).toBe('limit_reached')
    host.manager.cancelTask(id)
  })

  it('F14: goes on in the background after the seconds of its call', async () => {
    const host = setUp()
    const { llmContent } = await host.sh('sleep 60', { background_after_seconds: 0.05 })
    expect(llmContent).toContain('has not ended within 0.05 s: it continues in the background')
    expect(lastOf(host)).toMatchObject({ status: 'running', kind: 'command' })
    expect(lastOf(host)).not.toHaveProperty('isForeground')
  })
})

describe('with a shell', () => {
  it('F1: a call is one command line', async () => {
    const { run_command } = setUp({ shell: true })
    const names = ['command', 'cwd', 'env', 'timeout_seconds', 'background_after_seconds', 'async']
    expect(Object.keys(run_command.inputSchema.shape)).toEqual([
      ...names,
      'after',
      'on_failed_dependency',
      'concurrency_key',
    ])
    const { llmContent } = await run_command.execute({ command: 'echo "a b" | tr a-z A-Z' })
    expect(JSON.parse(llmContent)).toMatchObject({
      final_message: 'A B',
      command: `/bin/sh -c 'echo "a b" | tr a-z A-Z'`,
    })
    expect((await run_command.execute({ command: 'echo', args: ['x'] })).error?.message).toContain('args')
  })

  it.each([undefined, false])(
    'F1: a line that ends in & runs in the background, and the answer says so',
    async (async) => {
      const { run_command, manager } = setUp({ shell: true })
      const { llmContent, metadata } = await run_command.execute({ command: 'echo up; exec sleep 60 & ', async })
      expect(llmContent).toMatch(
        /^Async task launched: command echo up; exec sleep 60 \(ID: sh-\w+\)\. Its line ends in "&": it runs as with async: true\. Task is running/,
      )
      expect(metadata).toMatchObject({ async: true, status: 'running' })
      const id = metadata?.['agentId'] as string
      await until(() => manager.readOutput(id)?.text === 'up\n')
      expect(manager.getTask(id)).toMatchObject({
        status: 'running',
        command: ['/bin/sh', '-c', 'echo up; exec sleep 60'],
      })
      expect(run_command.describe({ command: 'sleep 60 &' })).toBe('Run in the background: sleep 60')
    },
  )

  it.each(['true && true', 'echo \\&', 'echo "&"', 'echo a & wait', 'echo 1 >&2'])(
    'F1: %s runs in place',
    async (command) => {
      const { run_command } = setUp({ shell: true })
      expect((await run_command.execute({ command })).metadata).toMatchObject({ async: false, exitCode: 0 })
    },
  )

  it('F1: an asked background needs no words, and the & is no part of what runs', async () => {
    const { run_command } = setUp({ shell: true })
    const { llmContent } = await run_command.execute({ command: 'sleep 60 &', async: true })
    expect(llmContent).not.toContain('ends in')
  })
})

describe('what a command leaves in its process group', () => {
  it.each([
    ['holds its output open', 'sleep 60 & echo $! up'],
    ['has closed its output', 'sleep 60 >/dev/null 2>&1 & echo $! up'],
  ])('F1: is ended and counted when it %s', async (_how, line) => {
    const host = setUp()
    const { llmContent, metadata } = await host.sh(line)
    const [json = '', note] = llmContent.split('\n\n')
    const { final_message, ...result } = JSON.parse(json) as { final_message: string }
    expect(result).toMatchObject({ exit_code: 0, ended_processes: 1 })
    expect(note).toBe('1 process that it had left was ended with it: what must go on runs with async: true.')
    expect(metadata).toMatchObject({ endedProcesses: 1 })
    expect(lastOf(host)).toMatchObject({ status: 'completed', endedProcesses: 1 })
    await until(() => !isAlive(Number.parseInt(final_message)))
  })

  it('F1: is counted when it fails too, and is said in its message', async () => {
    const { sh, wait } = setUp()
    await sh('sleep 60 >/dev/null 2>&1 & sleep 60 >/dev/null 2>&1 & exit 3', { async: true })
    expect(await wait()).toContain('"ended_processes": 2')
  })

  it('F1: is nothing usually: no count, and no word', async () => {
    const host = setUp()
    const { llmContent } = await host.sh('sleep 0 & wait; echo done')
    expect(llmContent).not.toContain('ended')
    expect(lastOf(host)).not.toHaveProperty('endedProcesses')
  })

  it('F1: is not counted when the command is stopped', async () => {
    const host = setUp()
    const call = new AbortController()
    await host.sh('sleep 60 & echo up; wait', {}, { signal: call.signal, onUpdate: () => call.abort() })
    expect(lastOf(host)).not.toHaveProperty('endedProcesses')
  })
})

describe('the deadline of a command', () => {
  it('F1: is that of the tools in place, and none in the background', async () => {
    const host = setUp()
    expect((await host.sh('true')).metadata).toMatchObject({ effectiveTimeoutSeconds: 900 })
    const { metadata, llmContent } = await host.sh('exec sleep 60', { async: true })
    expect(metadata).toMatchObject({ effectiveTimeoutSeconds: -1 })
    expect(metadata).not.toHaveProperty('timeoutClamped')
    expect(llmContent).not.toContain('timeout')
    expect(lastOf(host)).not.toHaveProperty('timeoutMs')
    expect((await host.sh('true', { async: true, timeout_seconds: 7200 })).metadata).toMatchObject({
      effectiveTimeoutSeconds: 7200,
    })
    expect(host.run_command.inputSchema.shape.timeout_seconds.description).toBe(
      'The task is stopped after this many seconds. Default 900. At most 1800. With async: true: Default: no deadline. -1 for no deadline.',
    )
  })

  it.each([false, true])('F1: is at most maxTimeoutSeconds, and says what was cut (async: %j)', async (async) => {
    const { sh } = setUp({ maxTimeoutSeconds: 3600 })
    const { metadata, llmContent } = await sh('true', { async, timeout_seconds: 7200 })
    expect(metadata).toMatchObject({
      effectiveTimeoutSeconds: 3600,
      timeoutClamped: true,
      requestedTimeoutSeconds: 7200,
    })
    expect(llmContent).toContain('The timeout was cut to the limit of 3600 seconds (asked: 7200).')
    const { metadata: standard } = await sh('true', { async })
    expect(standard).toMatchObject({ effectiveTimeoutSeconds: async ? 3600 : 900 })
    expect(standard).not.toHaveProperty('requestedTimeoutSeconds')
  })

  it('F1: has no limit with -1, and defaultTimeoutSeconds counts in the background as well', async () => {
    const { sh } = setUp({ maxTimeoutSeconds: -1, defaultTimeoutSeconds: 60 })
    for (const async of [false, true]) {
      expect((await sh('true', { async, timeout_seconds: 7200 })).metadata).toMatchObject({
        effectiveTimeoutSeconds: 7200,
      })
      expect((await sh('true', { async, timeout_seconds: -1 })).metadata).toMatchObject({ effectiveTimeoutSeconds: -1 })
      expect((await sh('true', { async })).metadata).toMatchObject({ effectiveTimeoutSeconds: 60 })
    }
  })

  it('F1: names what lifts it when it has passed', async () => {
    const { sh } = setUp()
    const { llmContent } = await sh('exec sleep 60', { timeout_seconds: 0.1 })
    expect(JSON.parse(llmContent)).toMatchObject({
      error_code: 'TASK_TIMEOUT',
      timeout_setting: "timeout_seconds, up to the host's commands.maxTimeoutSeconds",
    })
  })
})

describe('the options', () => {
  it.each([
    [{}, 'options.commands.allow: got undefined, expected an array of programs.'],
    [
      { allow: ['sh'], shell: true },
      'options.commands.allow: got an array of 1, expected nothing with shell: true, which can start any program.',
    ],
    [
      { allow: ['./sh'] },
      'options.commands.allow[0]: got "./sh", expected the name of a program in PATH, or a normal absolute path.',
    ],
    [{ allow: ['/bin/../bin/sh'] }, 'options.commands.allow[0]'],
    [{ allow: [''] }, 'options.commands.allow[0]'],
    [{ allow: ['..'] }, 'options.commands.allow[0]'],
    [{ allow: [], env: ['A=B'] }, 'options.commands.env[0]: got "A=B", expected the name of a variable.'],
    [{ allow: [], cwd: [] }, 'options.commands.cwd'],
    [{ allow: [], alow: [] }, 'options.commands.alow'],
    [{ allow: [], defaultTimeoutSeconds: 0 }, 'task-default-timeout-seconds'],
    [{ allow: [], maxTimeoutSeconds: 0 }, 'Setting commands.maxTimeoutSeconds: got 0, expected an integer >= 1, or -1'],
  ])('%j: %s', (commands, message) => {
    expect(() => createAgentTasks({ commands: commands })).toThrow(message)
  })

  it('without commands there is no such tool', () => {
    expect(Object.keys(createAgentTasks().tools)).not.toContain('run_command')
  })

  it('the description names the programs and variables, and the deadline is that of commands', () => {
    const { run_command } = setUp({ env: ['CI'], defaultTimeoutSeconds: 60 })
    expect(run_command.description).toMatch(
      /^Run a program, without a shell, [^]*\nPrograms: "sh", "echo"\.\nVariables: "CI"\.$/,
    )
    expect(run_command.inputSchema.shape.timeout_seconds.description).toContain('Default 60.')
    expect(run_command.describe({ command: 'sh', args: ['a b'] })).toBe("Run: sh 'a b'")
  })
})

describe('a command in a store', () => {
  it('F1: fails as interrupted when its host dies, and its program is ended by the next host', async () => {
    const store = memoryStore()
    const host = setUp({ store, env: ['TOKEN'] })
    const id = await host.launch('echo up; exec sleep 60', { env: { TOKEN: 'secret-value' } })
    await host.printed(id, 'up')
    const { pid = 0 } = host.manager.getTask(id) ?? {}
    expect(isAlive(pid)).toBe(true)
    expect(JSON.stringify(store.contents())).not.toContain('secret-value')

    // A subagent of the same name that would be run again.
    const sh = { run: () => ({ final_message: 'again' }), retry: { attempts: 2, on: ['interrupted'] as const } }
    const next = setUp({ store: store.copy(), subagents: { sh } })
    expect(await next.recovered).toMatchObject({ interrupted: [id] })
    await until(() => next.manager.getTask(id)?.status !== 'running')
    expect(isAlive(pid)).toBe(false)
    expect(next.manager.getTask(id)).toMatchObject({
      kind: 'command',
      command: ['sh', '-c', 'echo up; exec sleep 60'],
      status: 'failed',
      delivery: 'owed',
      errorCode: 'INTERRUPTED',
    })
    // The next host looks every 100 ms until nothing is left.
    const gone = performance.now()
    await until(() => performance.now() > gone + 200)
  })
})
