// Long-running commands and signals: watch, submit and serve.
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { begin, containing, jsonLines, matching, run, signal, startCommandLine } from './command-line.js'
import { waitFor } from '../../support/wait-for.js'

const add = { task_name: 'Add', commands: [{ tool_name: 'add', args: { a: 2, b: 3 } }] }
const slow = { task_name: 'Slow', commands: [{ tool_name: 'slow', args: { seconds: 60, steps: 1 } }] }

/** Replaces process.exit by a spy. */
function keepAlive() {
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never)
  onTestFinished(() => exit.mockRestore())
  return exit
}

const watching = async (args: readonly string[], isTTY = false) => {
  const host = await startCommandLine()
  const watch = begin(['tasks', 'watch', '--interval', '50', ...args], {
    isTTY,
    env: { AGENT_TASKS_URL: host.server.httpUrl },
  })
  return { ...host, ...watch }
}

describe('tasks watch without an id', () => {
  it('prints a line for each change of each task, once, until Ctrl-C', async () => {
    const before = process.listenerCount('SIGINT')
    const { submit, written, ended, server } = await watching([])
    await submit(add)
    const id = server.taskManager.listTasks()[0]!.id
    await waitFor(() => expect(written.stdout).toContain(`${id} calc completed 1/1\n`))
    await submit(slow, ['--detach'])
    await waitFor(() => expect(written.stdout).toContain(' calc running 0/1\n'))
    signal('SIGINT')
    const { exitCode, stdout, stderr } = await ended
    expect([exitCode, stderr]).toEqual([130, ''])
    expect(stdout.split('\n').filter((line) => line.startsWith(`${id} calc completed`))).toHaveLength(1)
    expect(process.listenerCount('SIGINT')).toBe(before)
  })

  it('prints the tasks as JSON', async () => {
    const { submit, written, ended } = await watching(['--json'])
    await submit(add)
    await waitFor(() => expect(written.stdout).toContain('"completed"'))
    signal('SIGINT')
    expect(jsonLines((await ended).stdout).at(-1)).toMatchObject({
      status: 'completed',
      instanceId: 'calc',
      name: 'Add',
    })
  })

  it('draws a table on a terminal, which stays after the end', async () => {
    const { submit, written, ended } = await watching([], true)
    await submit(add)
    await waitFor(() => expect(written.stdout).toMatch(/completed +1\/1 +calc/))
    signal('SIGINT')
    expect(await ended).toMatchObject({ exitCode: 130, stdout: matching(/ID +STATUS/) })
  })
})

describe('Ctrl-C', () => {
  const submitting = async () => {
    const host = await startCommandLine()
    const before = process.listenerCount('SIGINT')
    const ended = host.submit(slow)
    await waitFor(() => expect(host.server.taskManager.listTasks()[0]?.status).toBe('running'))
    // The client needs the answer before it can cancel.
    expect(process.listenerCount('SIGINT')).toBe(before + 1)
    return { ...host, ended, statusOf: () => host.server.taskManager.listTasks()[0]?.status }
  }

  it('S5: cancels the submitted task', async () => {
    const { ended, statusOf } = await submitting()
    signal('SIGINT')
    expect(await ended).toMatchObject({ exitCode: 130, stdout: '', stderr: matching(/task_\S+ was cancelled\.\n$/) })
    expect(statusOf()).toBe('cancelled')
  })

  it.each([
    [false, /task_\S+ \[1\/1\] slow cancelled\n/],
    [true, /slow \[\.*=*\.*\] cancelled\n/],
  ])('shows the running command as cancelled (terminal: %s)', async (isTTY, shown) => {
    const host = await startCommandLine()
    const ended = host.submit(slow, [], { isTTY, env: { NO_COLOR: '1' } })
    await waitFor(() => expect(host.server.taskManager.listTasks()[0]?.status).toBe('running'))
    host.server.taskManager.cancelTask(host.server.taskManager.listTasks()[0]!.id)
    expect(await ended).toMatchObject({ exitCode: 5, stderr: matching(shown) })
  })

  it('prints how to end a task that could not be cancelled', async () => {
    const { ended, server } = await submitting()
    const refuse = vi.spyOn(server.taskManager, 'cancelTask').mockReturnValue(false)
    signal('SIGINT')
    expect(await ended).toMatchObject({
      exitCode: 130,
      stderr: matching(/(task_\S+) may still run: agent-tasks tasks cancel \1\n$/),
    })
    refuse.mockRestore()
  })

  it('exits the process the second time', async () => {
    const exit = keepAlive()
    const { ended, server } = await submitting()
    const interrupt = process.listeners('SIGINT').at(-1)!
    interrupt('SIGINT')
    expect(exit).not.toHaveBeenCalled()
    interrupt('SIGINT')
    expect(exit).toHaveBeenCalledExactlyOnceWith(130)
    await ended
    expect(server.taskManager.listTasks()[0]?.status).toBe('cancelled')
  })
})

describe('a server that does not answer', () => {
  it.each([
    [['submit', '-'], /^The server has not answered, so the task may run\. `agent-tasks tasks list` shows it\.\n$/],
    [['tasks', 'watch'], /^$/],
    [['tasks', 'watch', 'task_1'], /^$/],
  ])('does not hold up the first Ctrl-C: %j', async (args, said) => {
    const sockets: Socket[] = []
    const silent = createServer((socket) => void sockets.push(socket.on('error', () => undefined)))
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    onTestFinished(() => {
      silent.close()
      for (const socket of sockets) socket.destroy()
    })
    const { port } = silent.address() as AddressInfo
    const before = process.listenerCount('SIGINT')
    const env = { AGENT_TASKS_URL: `http://127.0.0.1:${port}` }
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { ended } = begin(args, { env, stdin: JSON.stringify(add) })
    await once(silent, 'connection')
    expect(process.listenerCount('SIGINT')).toBe(before + 1)
    signal('SIGINT')
    await vi.advanceTimersByTimeAsync(4000)
    const { exitCode, stderr } = await ended
    expect(exitCode).toBe(130)
    expect(stderr).toMatch(said)
  })
})

describe('serve', () => {
  const free = ['--port', '0', '--ws-port', '0']

  it.each([
    [['--port', 'many'], '--port: got "many", expected an integer from 0'],
    [['--ws-port', '70000'], '--ws-port: got "70000"'],
    [['--page-port', 'x'], '--page-port: got "x"'],
    [['--instance', 'x'], '--instance: got "x"'],
    [['--config', '/no/such/file'], 'Setting --config, options.configFile: got "/no/such/file"'],
    [['--inspect', 'nonsense'], 'Setting url: got "nonsense"'],
    [
      ['--demo', '--instance', 'x=no-such-program'],
      'did not start: the command, or its working directory, was not found',
    ],
    [['--host', '0.0.0.0'], 'Setting HOST: got "0.0.0.0", expected a loopback address'],
  ])('%j starts nothing, with exit code 2', async (args, problem) => {
    const before = process.listenerCount('SIGTERM')
    expect(await run(['serve', ...free, ...args])).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: containing(problem),
    })
    expect(process.listenerCount('SIGTERM')).toBe(before)
  })

  it.each([
    ['--port', 'many'],
    ['--instance', 'x'],
    ['--host', '0.0.0.0'],
    ['--prot', '1'],
  ])('prints the error of %s %s once', async (...args) => {
    const { stderr } = await run(['serve', ...free, ...args])
    const [first = ''] = stderr.split('\n')
    expect(first).toMatch(/^(agent-tasks|error): /)
    expect(stderr.split(first)).toHaveLength(2)
  })

  it.each([
    [['--json'], (stdout: string) => (JSON.parse(stdout) as { httpUrl: string }).httpUrl],
    [[], (stdout: string) => /REST at (\S+) /.exec(stdout)![1]!],
  ])('%j prints its URLs, and stops on SIGTERM', async (args, urlIn) => {
    const exit = keepAlive()
    const said = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => said.mockRestore())
    const { exitCode, stdout } = await run(['serve', '--demo', '--inspect', 'ws://127.0.0.1:9', ...free, ...args])
    const stop = process.listeners('SIGTERM').at(-1)!
    onTestFinished(() => void process.off('SIGTERM', stop).off('SIGINT', stop).off('SIGHUP', stop))
    expect([exitCode, stdout]).toEqual([0, containing('calc')])
    const url = urlIn(stdout)
    expect((await fetch(`${url}/health`)).status).toBe(200)
    signal('SIGTERM')
    await waitFor(() => expect(exit).toHaveBeenCalledExactlyOnceWith(0))
    await expect(fetch(`${url}/health`)).rejects.toThrow()
    // A different signal belongs to the same request to stop.
    stop('SIGINT')
    expect(exit).toHaveBeenCalledExactlyOnceWith(0)
  })
})
