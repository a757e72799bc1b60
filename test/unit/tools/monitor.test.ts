/** The tool monitor, and the slash commands for monitors: F17. */
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { completeCommandLine, createAgentTasks, runCommandLine, type AgentTasksOptions } from '../../../src/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { until } from '../../support/lifelines.js'
import { settle } from './tool-host.js'
import type { OptionalTools } from '../../../src/tools/tool-list.js'

function setUp(options: AgentTasksOptions = {}) {
  const clock = createManualClock(1000)
  let last = 0
  const tasks = createAgentTasks({
    clock,
    createId: (prefix) => `${prefix}-${++last}`,
    subagents: {
      talker: (_request, context) => {
        context.append('error 1\n')
        return new Promise<string>((resolve) => context.signal.addEventListener('abort', () => resolve('')))
      },
    },
    monitors: {},
    ...options,
  })
  onTestFinished(() => tasks.dispose())
  const { monitor } = tasks.tools as unknown as OptionalTools
  const use = async (params: object) => monitor.execute(params)
  const notes = (owner?: string) =>
    tasks.manager.getPendingNotifications(owner).map(({ output }) => output?.final_message)
  const pass = async (ms: number) => {
    clock.advance(ms)
    await settle()
  }
  return { tasks, clock, use, notes, pass, slash: (line: string) => runCommandLine(tasks.commands, line), monitor }
}

describe('the tool monitor', () => {
  it('F17: is there with the option monitors, with the parameters that can be used', () => {
    const tasks = createAgentTasks()
    expect(tasks.tools).not.toHaveProperty('monitor')
    const names = (options: AgentTasksOptions) => Object.keys(setUp(options).monitor.inputSchema.shape)
    expect(names({})).not.toEqual(expect.arrayContaining(['command']))
    expect(names({})).toEqual(expect.arrayContaining(['task_id', 'match', 'monitor_id']))
    expect(names({}).filter((name) => ['command', 'args', 'cwd', 'env', 'file'].includes(name))).toEqual([])
    const all = { commands: { allow: ['sh'] }, monitors: { files: ['.'] } }
    expect(names(all)).toEqual(expect.arrayContaining(['command', 'args', 'cwd', 'env', 'file']))
    expect(names({ ...all, commands: { shell: true } })).not.toContain('args')
  })

  it('F17: starts a monitor of a task, lists it, and cancels it', async () => {
    const { tasks, use, notes, pass, monitor } = setUp()
    const { id } = tasks.launch('talker', 'talk')
    await settle()
    const started = await use({
      task_id: id.slice(0, 7),
      regex: '^ERROR \\d$',
      flags: 'i',
      description: 'the first error',
    })
    expect(started).toMatchObject({
      llmContent: 'Monitor mon-2 started. You get a message when a line matches, and when it ends.',
      metadata: { id: 'mon-2' },
    })
    await pass(200)
    expect(notes()).toEqual([expect.stringContaining('(the first error), task talker-1: 1 matching line(s).')])
    expect((await use({ action: 'list' })).llmContent).toContain(
      '- mon-2 of main: task talker-1, 1 event(s), ends in 4m 59s - the first error',
    )
    expect((await use({ action: 'cancel', monitor_id: 'mon-2' })).llmContent).toBe('Monitor mon-2 was cancelled.')
    expect(await use({ action: 'cancel', monitor_id: 'mon-2' })).toMatchObject({
      error: { type: 'parameter_validation', message: 'There is no monitor "mon-2".' },
    })
    expect((await use({ action: 'cancel' })).error?.message).toBe('There is no monitor "".')
    expect((await use({ action: 'list' })).llmContent).toBe('No monitors.')
    expect(notes()).toEqual([])
    expect(monitor.describe({ task_id: id, match: 'x' })).toBe('Monitor: start talker-1')
  })

  it('F17: neither lists nor cancels a monitor of another owner', async () => {
    const { tasks, use } = setUp()
    const { id } = tasks.launch('talker', 'talk')
    const { id: monitorId } = tasks.monitor({ taskId: id }, { match: 'x', owner: 'other' })
    expect(await use({ action: 'list' })).toMatchObject({ llmContent: 'No monitors.' })
    const { error } = await use({ action: 'cancel', monitor_id: monitorId })
    expect(error?.message).toContain('There is no monitor')
    expect(tasks.monitors('other')).toHaveLength(1)
  })

  it.each([
    [{ match: 'x' }, 'parameter_validation', 'params: expected task_id.'],
    [{ task_id: 'nobody', match: 'x' }, 'parameter_validation', 'Task not found'],
    [{ task_id: 'talker-1' }, 'parameter_validation', 'params: expected match or regex.'],
    [{ task_id: 'talker-1', match: 'x', regex: 'x' }, 'parameter_validation', 'either match or regex'],
    [{ task_id: 'talker-1', match: 'x', flags: 'i' }, 'parameter_validation', 'flags beside a regex'],
    [{ task_id: 'talker-1', match: 'x\ny' }, 'parameter_validation', 'without line breaks'],
    [{ task_id: 'talker-1', regex: '(?=a)' }, 'parameter_validation', 'without look-arounds'],
    [{ task_id: 'talker-1', match: 'x', seconds: 1801 }, 'parameter_validation', 'input.seconds: got 1801'],
    [{ task_id: 'talker-1', match: 'x', max_events: 0 }, 'parameter_validation', 'input.maxEvents: got 0'],
    [{ task_id: 'talker-1', match: 'x', idle_seconds: -1 }, 'parameter_validation', 'input.idleSeconds: got -1'],
    [{ file: 'x', match: 'x' }, 'parameter_validation', 'params.file: got "x", expected a known field'],
    [{ command: 'ls', match: 'x' }, 'parameter_validation', 'params.command: got "ls", expected a known field'],
    [
      { action: 'stop' },
      'parameter_validation',
      'params.action: got "stop", expected one of "start", "list", "cancel"',
    ],
  ])('F17: refuses %j', async (params, type, message) => {
    const { tasks, use } = setUp()
    tasks.launch('talker', 'talk')
    const { error, llmContent } = await use(params)
    expect(error?.type).toBe(type)
    expect(`${error?.message}${llmContent}`).toContain(message)
    expect(tasks.monitors()).toEqual([])
  })

  it('F17: names the limit that it has reached', async () => {
    const { tasks, use } = setUp({ monitors: { maxPerOwner: 1 }, commands: { allow: ['sh'], maxCommands: 0 } })
    const { id } = tasks.launch('talker', 'talk')
    expect(await use({ command: 'sh', match: 'x' })).toMatchObject({
      error: { type: 'limit_reached', message: 'Max command tasks (0) reached' },
    })
    expect(tasks.monitors()).toEqual([])
    await use({ task_id: id, match: 'x' })
    expect(await use({ task_id: id, match: 'x' })).toMatchObject({
      error: {
        type: 'limit_reached',
        message: 'Max monitors of one owner (1, monitors.maxPerOwner) reached. Cancel one that is no longer needed.',
      },
    })
  })

  it('F17: returns when the monitor is stored', async () => {
    const store = memoryStore()
    const { tasks, use } = setUp({ store })
    const { id } = tasks.launch('talker', 'talk')
    await tasks.manager.stored()
    const write = store.write.bind(store)
    let release: () => void = () => undefined
    store.write = (changes) => new Promise((resolve) => (release = () => resolve(write(changes))))
    let isOver = false
    const call = use({ task_id: id, match: 'x' }).then(() => (isOver = true))
    await settle()
    const wasOver = isOver
    store.write = write
    release()
    await call
    expect(wasOver).toBe(false)
    expect(store.contents().featureStates).toHaveLength(1)
  })
})

describe('a monitor of a program', () => {
  const folder = (): string => {
    const path = realpathSync(mkdtempSync(join(tmpdir(), 'monitored-')))
    onTestFinished(() => rmSync(path, { recursive: true, force: true }))
    return path
  }
  const script = 'echo "in $PWD: $NAME"; while test ! -e end; do sleep 0.05; done; echo over; exit 3'

  it('F17: starts it as run_command would, reports its lines, and ends with it', async () => {
    const cwd = folder()
    const { tasks, use, notes, pass } = setUp({ commands: { allow: ['sh'], env: ['NAME'], cwd } })
    const params = { command: 'sh', args: ['-c', script], env: { NAME: 'set' }, match: ['in', 'over'] }
    expect((await use(params)).error).toBeUndefined()
    const [task] = tasks.manager.getRunningTasks()
    expect(task).toMatchObject({ kind: 'command', command: ['sh', '-c', script], owner: 'main' })
    const id = task?.id ?? ''
    await until(() => tasks.manager.readOutput(id)?.text.includes('set') === true)
    await pass(200)
    expect(notes()[0]).toContain(`in ${cwd}: set`)
    writeFileSync(join(cwd, 'end'), '')
    await until(() => tasks.manager.getTask(id)?.status === 'failed')
    expect(tasks.monitors()).toEqual([])
    expect(notes().at(-1)).toMatch(/over\n```\n.* The monitor has ended: its task has ended \(failed\)\.$/)
  })

  it('F17: ends it with the monitor', async () => {
    const { tasks, use } = setUp({ commands: { shell: true, cwd: folder() } })
    const { metadata } = await use({ command: `${script} &`, match: 'over' })
    const [task] = tasks.manager.getRunningTasks()
    expect(task?.command?.at(-1)).toBe(script)
    await use({ action: 'cancel', monitor_id: metadata?.['id'] })
    expect(tasks.manager.getTask(task?.id ?? '')).toMatchObject({
      status: 'cancelled',
      cancelReason: 'its monitor has ended',
      delivery: 'none',
    })
    const again = tasks.monitor({ command: script }, { match: 'over', seconds: 5, owner: 'gone' })
    const [other] = tasks.manager.getRunningTasks('gone')
    tasks.manager.releaseOwner('gone')
    await settle()
    expect(tasks.manager.getTask(other?.id ?? '')?.status).toBe('cancelled')
    expect(again.cancel()).toBe(false)
  })

  it('F17: is refused outside of the policy, with nothing started', () => {
    const { tasks } = setUp({ commands: { allow: ['sh'], cwd: folder() } })
    const start =
      (source: object, options: object = {}) =>
      () =>
        tasks.monitor(source as never, { match: 'x', ...options })
    expect(start({ command: 'rm' })).toThrow('params.command: got "rm", expected one of "sh".')
    expect(start({ command: 'sh', cwd: '/' })).toThrow('params.cwd: got "/", expected a folder within')
    expect(start({ command: 'sh', env: { PATH: '/' } })).toThrow('params.env: got "PATH", expected no variables.')
    expect(start({ command: 'sh' }, { seconds: -1 })).toThrow('input.seconds: got -1')
    expect(start({ command: 'sh' }, { match: /(?=a)/ })).toThrow('without look-arounds')
    expect(start({ command: 'sh' }, { owner: 'run:gone' })).toThrow('input.owner')
    expect(start({ command: 'sh' }, { key: 'k' })).toThrow(
      'input.key: got "k", expected none for a monitor of a program',
    )
    expect(() => setUp().tasks.monitor({ command: 'sh' }, { match: 'x' })).toThrow(
      'input.command: got "sh", expected none (see the option commands).',
    )
    expect([tasks.manager.getAllTasks(), tasks.monitors()]).toEqual([[], []])
  })

  it('F17: has ended after a restart, and that is reported', async () => {
    const store = memoryStore()
    const { use } = setUp({ store, commands: { allow: ['sh'], cwd: folder() } })
    await use({ command: 'sh', args: ['-c', script], match: 'over' })
    const { tasks, notes } = setUp({ store: store.copy() })
    await tasks.recovered
    // The task fails, and its monitor ends, when its program has ended.
    await until(() => tasks.monitors().length === 0)
    expect(notes().filter((text) => String(text).startsWith('Monitor'))).toEqual([
      expect.stringMatching(/The monitor has ended: its task has ended \(failed\)\.$/),
    ])
  })
})

describe('the slash commands', () => {
  it('F17: list the monitors, and end one, whose owner gets the reason', () => {
    const { tasks, notes, slash } = setUp()
    expect(slash('/monitors')).toEqual({ type: 'info', text: 'No monitors.' })
    const { id } = tasks.launch('talker', 'talk')
    const { id: monitorId } = tasks.monitor({ taskId: id }, { match: 'x', description: 'a\u001b[31m\nb' })
    expect(slash('/monitors')).toEqual({
      type: 'info',
      text: '- mon-2 of main: task talker-1, 0 event(s), ends in 5m 0s - a [31m b',
    })
    expect(completeCommandLine(tasks.commands, '/monitor cancel mon')).toEqual([monitorId])
    expect(slash('/monitor cancel nobody')).toEqual({ type: 'error', text: 'Monitor not found: nobody' })
    expect(slash('/monitor')).toEqual({ type: 'error', text: 'Usage: /monitor cancel <monitor_id>' })
    expect(slash(`/monitor cancel ${monitorId}`)).toEqual({ type: 'info', text: 'Cancelled monitor: mon-2' })
    expect(notes()).toEqual([expect.stringContaining('The monitor has ended: it was cancelled: by the user.')])
    expect(slash('/monitors')?.text).toBe('No monitors.')
  })
})
