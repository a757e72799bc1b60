/** The tool run_command over MCP: from the configuration, with a limit for each client, and its output as progress. */
import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it } from 'vitest'
import { agentConfigSchema } from '../../../src/protocol/agent-config.js'
import { until } from '../../support/lifelines.js'
import { overHttp, overStdio, textOf } from './clients.js'

const commands = { allow: ['sh'], env: ['NAME'], cwd: tmpdir(), maxCommands: 1, maxTimeoutSeconds: 3600 }

const sh = (line: string, more: object = {}) => ({
  name: 'run_command',
  arguments: { command: 'sh', args: ['-c', line], ...more },
})

interface Listed {
  readonly tools: readonly { readonly name: string; readonly description: string }[]
}

describe('run_command', () => {
  it('F1: is listed where the configuration has commands, in at most 1600 bytes of JSON besides its programs', async () => {
    const without = overStdio()
    await without.initialize()
    const names = ((await without.ask(1, 'tools/list', {})) as unknown as Listed).tools.map(({ name }) => name)
    expect(names).not.toContain('run_command')
    const { ask, initialize } = overStdio({ commands })
    await initialize()
    const { tools } = (await ask(1, 'tools/list', {})) as unknown as Listed
    const tool = tools.find(({ name }) => name === 'run_command')
    expect(tool?.description).toContain('Programs: "sh".')
    expect(JSON.stringify(tool).length).toBeLessThanOrEqual(1600)
  })

  it('F1: returns the output of a program, and says how one failed', async () => {
    const { ask, initialize } = overStdio({ commands })
    await initialize()
    const answer = await ask(1, 'tools/call', sh('pwd -P; echo $NAME', { env: { NAME: 'set' } }))
    expect(textOf(answer)).toContain(JSON.stringify(`${realpathSync(tmpdir())}\nset`))
    expect(answer.structuredContent).toMatchObject({
      status: 'completed',
      async: false,
      exit_code: 0,
      task_id: expect.any(String) as string,
    })
    const failed = await ask(2, 'tools/call', sh('echo why >&2; exit 4'))
    expect(failed).toMatchObject({ isError: true, structuredContent: { status: 'failed', exit_code: 4 } })
    expect(textOf(failed)).toContain('"exit_code": 4')
    expect(textOf(failed)).toContain('why')
    expect(textOf(await ask(3, 'tools/call', { name: 'run_command', arguments: { command: 'env' } }))).toContain(
      'params.command: got "env", expected one of "sh".',
    )
  })

  it('F1: says what was cut of its deadline, and what was ended with it, as fields', async () => {
    const { ask, initialize } = overStdio({ commands })
    await initialize()
    const answer = await ask(1, 'tools/call', sh('sleep 60 >/dev/null 2>&1 &', { timeout_seconds: 7200 }))
    expect(answer.structuredContent).toMatchObject({
      timeout_clamped: true,
      requested_timeout_seconds: 7200,
      exit_code: 0,
      ended_processes: 1,
    })
    expect(textOf(answer)).toContain('The timeout was cut to the limit of 3600 seconds (asked: 7200).')
  })

  it('F1: says how a program ended also where its call is followed as a task', async () => {
    const { ask, initialize } = overStdio({ commands })
    await initialize()
    const { task } = (await ask(1, 'tools/call', { ...sh('exit 4'), task: {} })) as unknown as {
      task: { taskId: string }
    }
    expect(await ask(2, 'tasks/result', { taskId: task.taskId })).toMatchObject({
      isError: true,
      structuredContent: { task_id: task.taskId, status: 'failed', exit_code: 4 },
    })
  })

  it('F1: has a limit of its own for each client, which calls in place take up too', async () => {
    const { ask, initialize, say } = overStdio({ commands, maxAsyncTasks: 0 })
    await initialize()
    say({ id: 1, method: 'tools/call', params: sh('exec sleep 60') })
    await ask(2, 'ping', {})
    const refused = await ask(3, 'tools/call', sh('echo', { async: true }))
    expect(textOf(refused)).toBe(
      'Max commands (1) reached. Wait until one has ended (wait_for_async_tasks), or cancel one (cancel_async_task). A ' +
        'cancelled command counts until its program has ended.',
    )
    say({ method: 'notifications/cancelled', params: { requestId: 1 } })
  })

  it.each([true, false])(
    'F1: counts a command of a client until its program has ended, also when it was cancelled (async: %s)',
    async (isAsync) => {
      const { ask, initialize, say, clock } = overStdio({ commands })
      await initialize()
      const deaf = sh('trap "" TERM; echo up; while :; do sleep 1; done', { async: isAsync })
      say({ id: 1, method: 'tools/call', params: deaf })
      const list = () => ask((id += 1), 'tools/call', { name: 'check_async_tasks', arguments: {} })
      let id = 1
      while (!textOf(await list()).includes('output: "up"'));
      await ask((id += 1), 'tools/call', { name: 'cancel_async_task', arguments: { task_id: 'sh' } })
      expect(textOf(await list())).toContain('cancelled')
      const call = () => ask((id += 1), 'tools/call', sh('echo'))
      expect(textOf(await call())).toContain('Max commands (1) reached')
      // It gets SIGKILL.
      clock.advance(4000)
      while (textOf(await call()).includes('Max commands (1) reached'));
    },
  )

  it('F1: one client does not take the slots of another', async () => {
    const [one, other] = await Promise.all([
      overHttp({ commands }, { authorization: 'Bearer a' }),
      overHttp({ commands }),
    ])
    await one.call('run_command', sh('exec sleep 60', { async: true }).arguments)
    expect(textOf(await other.call('run_command', sh('echo free').arguments))).toContain('free')
  })

  it('F2: sends what a program writes as progress, by its last line, once a second', async () => {
    const { ask, initialize, clock, say, notices, answers } = overStdio({ commands })
    await initialize()
    const long = 'x'.repeat(500)
    const call = sh(`echo one; printf '\\n\\033[2Jtwo ${long}\\n'; exec sleep 60`)
    say({ id: 1, method: 'tools/call', params: { ...call, _meta: { progressToken: 'p' } } })
    const progress = () =>
      notices.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params)
    for (let id = 2, list = ''; !list.includes(' - output: '); id += 1) {
      list = textOf(await ask(id, 'tools/call', { name: 'check_async_tasks', arguments: {} }))
    }
    clock.advance(1000)
    await until(() => progress().length === 1)
    const [{ message, ...rest } = {}] = progress()
    expect(rest).toEqual({ progressToken: 'p', progress: 1 })
    expect(message).toBe(`[2Jtwo ${long}`.slice(0, 200))
    clock.advance(10_000)
    await until(() => progress().length === 2)
    expect(progress()[1]).toEqual({ progressToken: 'p', progress: 11, message: 'Waiting for 11 s.' })
    expect(answers.has(1)).toBe(false)
  })
})

describe('the configuration of commands', () => {
  const parse = (value: unknown) => agentConfigSchema.safeParse({ commands: value })

  it('F1: has programs or a shell, and not both', () => {
    expect(parse({ allow: ['npm', '/usr/bin/make'] }).success).toBe(true)
    expect(parse({ shell: true }).success).toBe(true)
    for (const wrong of [
      {},
      { allow: ['npm'], shell: true },
      { allow: ['./npm'] },
      { allow: ['/usr/../bin/make'] },
      { allow: [''] },
    ]) {
      expect(parse(wrong).success, JSON.stringify(wrong)).toBe(false)
    }
    expect(parse({ allow: [], env: ['A=B'] }).success).toBe(false)
    expect(parse({ allow: [], maxCommands: 1.5 }).success).toBe(false)
    expect(parse({ allow: [], defaultTimeoutSeconds: 100_000 }).success).toBe(false)
  })
})
