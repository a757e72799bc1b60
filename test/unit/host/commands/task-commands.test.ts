/** /tasks and /task: list and end background tasks. */
import { describe, expect, it } from 'vitest'
import { completeCommandLine, runCommandLine } from '../../../../src/host/commands/command.js'
import { createTaskCommands } from '../../../../src/host/commands/task-commands.js'
import { controlledRun, settle, setUpHost } from '../../tools/tool-host.js'

function setUp(owner?: string) {
  const host = setUpHost()
  const commands = createTaskCommands({
    getAsyncTaskManager: host.getAsyncTaskManager,
    ...(owner !== undefined && { owner }),
  })
  return {
    ...host,
    commands,
    run: (line: string) => runCommandLine(commands, line),
    complete: (line: string) => completeCommandLine(commands, line),
  }
}

describe.each(['/tasks', '/tasks list', '/task list', ' /tasks  list '])('%s', (line) => {
  it('reports that there are no tasks', () => {
    expect(setUp().run(line)).toEqual({ type: 'info', text: 'No async tasks.' })
  })

  it('has a line for each task', () => {
    const { clock, manager, register, run } = setUp()
    register('researcher-a1', { subagentName: 'researcher', goalPrompt: 'x'.repeat(40) })
    register('researcher-b2', { subagentName: 'researcher', goalPrompt: `${'x'.repeat(39)}😀` })
    register('coder-0001', { subagentName: 'coder', goalPrompt: '  write\n\n  the\tcode ' })
    register('tester-0001', { subagentName: 'tester' })
    clock.advance(61_000)
    manager.completeTask('researcher-b2', {})
    manager.failTask('coder-0001', 'no')
    manager.cancelTask('tester-0001')
    clock.advance(3_000)
    expect(run(line)).toEqual({
      type: 'info',
      text: [
        `[RUNNING] [researcher-a] researcher (1m 4s) - ${'x'.repeat(40)}`,
        `[DONE] [researcher-b] researcher (1m 1s) - ${'x'.repeat(39)}...`,
        '[FAILED] [coder-00] coder (1m 1s) - write the code',
        '[CANCELLED] [tester-0] tester (1m 1s) - do it',
      ].join('\n'),
    })
  })

  it('has no control characters of names and goals, which a model chose', () => {
    const { register, run } = setUp()
    register('evil', { subagentName: 'e\u001b[2Jvil', goalPrompt: 'do\u001b]0;title\u0007 it' })
    expect(run(line)?.text).toBe('[RUNNING] [evil] e [2Jvil (0s) - do ]0;title  it')
  })

  it('says how many tasks do not fit into 18,000 characters', () => {
    const { register, run } = setUp()
    for (let n = 0; n < 100; n += 1) register(`job-${String(n).padStart(8, '0')}`, { subagentName: 's'.repeat(200) })
    const lines = run(line)?.text.split('\n') ?? []
    const shown = lines.length - 1
    expect(lines.at(-1)).toBe(`... and ${100 - shown} more`)
    const used = lines.slice(0, -1).join('\n').length
    expect([used <= 18_000, used + (lines[0]?.length ?? 0) + 1 > 18_000]).toEqual([true, true])
  })

  it('A5: acknowledges nothing', () => {
    const { manager, register, run } = setUp()
    register('a')
    manager.completeTask('a', {})
    run(line)
    expect(manager.getTask('a')?.delivery).toBe('owed')
  })
})

describe('/task end', () => {
  it.each(['/task end', '/task end   '])('without an id returns the usage (%j)', (line) => {
    expect(setUp().run(line)).toEqual({ type: 'error', text: 'Usage: /task end <task_id> [reason]' })
  })

  it('cancels a task by its id or a prefix', () => {
    const { manager, register, run } = setUp()
    const { abortController } = register('researcher-a1')
    register('researcher-b2')
    expect(run('/task end researcher-a')).toEqual({ type: 'info', text: 'Cancelled task: researcher-a1' })
    expect(manager.getTask('researcher-a1')?.status).toBe('cancelled')
    expect(abortController?.signal.aborted).toBe(true)
    expect(manager.getTask('researcher-b2')?.status).toBe('running')
  })

  it('keeps what follows the id as the reason, and nothing where nothing follows', () => {
    const { manager, register, run } = setUp()
    for (const id of ['a', 'b', 'with space']) register(id)
    expect(run('/task end a  too slow, and  too dear ')?.text).toBe('Cancelled task: a')
    expect(manager.getTask('a')?.cancelReason).toBe('too slow, and  too dear')
    run('/task end b')
    expect(manager.getTask('b')?.cancelReason).toBeUndefined()
    run('/task end with space')
    expect(manager.getTask('with space')).toMatchObject({ status: 'cancelled' })
    expect(manager.getTask('with space')?.cancelReason).toBeUndefined()
  })

  it('prefers an exact id to a longer one', () => {
    const { manager, register, run } = setUp()
    register('task-10')
    register('task-1')
    expect(run('/task end task-1')?.text).toBe('Cancelled task: task-1')
    expect(manager.getTask('task-10')?.status).toBe('running')
  })

  it('reports that there is no such task', () => {
    expect(setUp().run('/task end no body')).toEqual({ type: 'error', text: 'Task not found: no body' })
  })

  it('lists the candidates of an ambiguous prefix, and ends none', () => {
    const { manager, register, run } = setUp()
    register('researcher-a1', { subagentName: 'researcher' })
    register('researcher-b2', { subagentName: 'reviewer' })
    expect(run('/task end res')).toEqual({
      type: 'error',
      text: 'Ambiguous task ID. Did you mean:\n- researcher-a (researcher) - running\n- researcher-b (reviewer) - running',
    })
    expect(manager.getRunningTasks()).toHaveLength(2)
  })

  it('of several tasks, means the one that has not ended', () => {
    const { manager, register, run } = setUp()
    for (const id of ['lead-1', 'lead-2', 'lead-3']) register(id)
    for (const id of ['lead-1', 'lead-3']) manager.completeTask(id, {})
    expect(run('/task end lead')?.text).toBe('Cancelled task: lead-2')
    expect(run('/task end lead')?.text).toMatch(
      /^Ambiguous .*\n- lead-1 \(\w+\) - completed\n- lead-2 \(\w+\) - cancelled/,
    )
  })

  it('A1: reports that the task has already ended', () => {
    const { manager, register, run } = setUp()
    register('a')
    manager.failTask('a', 'no')
    const record = manager.getTask('a')
    expect(run('/task end a')).toEqual({ type: 'error', text: 'Task a is already failed.' })
    expect(manager.getTask('a')).toBe(record)
  })

  it('completes the ids of running tasks, short unless more was typed', () => {
    const { complete, manager, register } = setUp()
    for (const id of ['researcher-a1', 'researcher-b2', 'coder-000001', 'done']) register(id)
    manager.completeTask('done', {})
    expect(complete('/task end ')).toEqual(['researcher-a', 'researcher-b', 'coder-00'])
    expect(complete('/task end res')).toEqual(['researcher-a', 'researcher-b'])
    expect(complete('/task end coder-0000')).toEqual(['coder-000001'])
    expect(complete('/task end d')).toEqual([])
    expect(complete('/task end esearcher')).toEqual([])
  })
})

it('a completion ends its task', () => {
  const { complete, manager, register, run } = setUp()
  for (const id of ['task-1', 'task-10', 'task-100', 'researcher-a1', 'researcher-b2']) register(id)
  for (const id of manager.getRunningTasks().map((task) => task.id)) {
    const [offered = ''] = complete(`/task end ${id}`)
    expect(run(`/task end ${offered}`)?.text).toBe(`Cancelled task: ${id}`)
  }
})

const usages =
  'Usage: /task end <task_id> [reason]\nUsage: /task answer <task_id> [question_id] <text>\nUsage: /task send <task_id> <text>'

it.each([
  ['/task', `Usage: /task list\n${usages}`],
  ['/task stop a', `Unknown subcommand: stop\nUsage: /task list\n${usages}`],
  ['/tasks end a', 'Unknown subcommand: end\nUsage: /tasks [list]'],
])('%s returns the usage', (line, text) => {
  expect(setUp().run(line)).toEqual({ type: 'error', text })
})

it('completes subcommands', () => {
  const { complete } = setUp()
  expect(complete('/task ')).toEqual(['list', 'end', 'answer', 'send'])
  expect(complete('/task e')).toEqual(['end'])
  expect(complete('/tasks ')).toEqual(['list'])
  expect(complete('/task list x')).toEqual([])
})

it("with an owner the commands see only that owner's tasks", () => {
  const { complete, manager, register, run } = setUp('sub')
  register('main-00001')
  register('sub-000001', { owner: 'sub' })
  expect(run('/tasks')?.text).toBe('[RUNNING] [sub-0000] helper (0s) - do it')
  expect(run('/task end main-00001')?.text).toBe('Task not found: main-00001')
  expect(complete('/task end ')).toEqual(['sub-0000'])
  expect(manager.getRunningTasks()).toHaveLength(2)
})

it("with an owner nothing is sent to another owner's task, and none of its questions is answered", async () => {
  const { complete, manager, run } = setUp('sub')
  const messages: string[] = []
  manager.launch(
    { id: 'main-1', subagentName: 's', goalPrompt: 'g' },
    {
      takesMessages: true,
      run: async (_input, context) => {
        void context.ask({ message: 'Which?' }).catch(() => undefined)
        for await (const message of context.messages) messages.push(message)
        return {}
      },
    },
  )
  await settle()
  expect(manager.getTask('main-1')?.questions).toHaveLength(1)
  expect(run('/task send main-1 hello')?.text).toBe('Task not found: main-1')
  expect(run('/task answer main-1 this one')?.text).toBe('Task not found: main-1')
  expect(complete('/task answer ')).toEqual([])
  await settle()
  expect(messages).toEqual([])
  expect(manager.getTask('main-1')?.questions).toHaveLength(1)
  await manager.dispose()
})

it('a question that is named needs an answer, and its number is no answer', async () => {
  const { manager, run } = setUp()
  manager.launch(
    { id: 'a', subagentName: 's', goalPrompt: 'g' },
    async (_input, context) => context.ask({ message: 'Which?' }) as never,
  )
  await settle()
  const [question] = manager.getTask('a')?.questions ?? []
  expect(run(`/task answer a ${question?.id}`)).toMatchObject({
    type: 'error',
    text: expect.stringMatching(/^Usage: \/task answer/) as string,
  })
  expect(run(`/task answer a ${question?.id}  `)).toMatchObject({ type: 'error' })
  expect(manager.getTask('a')?.questions).toHaveLength(1)
  await manager.dispose()
})

describe('/background', () => {
  const launch = ({ manager }: ReturnType<typeof setUp>, id: string, more: object = { isForeground: true }) =>
    manager.launch({ id, subagentName: 'helper', goalPrompt: 'g', ...more }, controlledRun().run)

  it('F14: without an id moves the only foreground task of the owner', () => {
    const host = setUp('main')
    expect(host.run('/background')).toEqual({ type: 'error', text: 'No task is in the foreground.' })
    launch(host, 'in-background', {})
    launch(host, 'of-another', { isForeground: true, owner: 'sub' })
    launch(host, 'a')
    expect(host.run('/background')).toEqual({ type: 'info', text: 'Task a continues in the background.' })
    expect(host.manager.getTask('a')).not.toHaveProperty('isForeground')
    expect(host.manager.getTask('of-another')?.isForeground).toBe(true)
    expect(host.run('/background')).toEqual({ type: 'error', text: 'No task is in the foreground.' })
  })

  it('F14: says which tasks are in the foreground when there are several, and moves the one that is named', () => {
    const host = setUp()
    for (const id of ['alpha', 'beta']) launch(host, id)
    launch(host, 'gamma', {})
    expect(host.run('/tasks')?.text).toBe(
      ['alpha', 'beta', 'gamma']
        .map((id) => `[RUNNING] [${id}] helper (0s${id === 'gamma' ? '' : ', in the foreground'}) - g`)
        .join('\n'),
    )
    expect(host.run('/background')).toEqual({
      type: 'error',
      text: 'Several tasks are in the foreground. Usage: /background [task_id]\n- alpha (helper) - running\n- beta (helper) - running',
    })
    expect(host.complete('/background ')).toEqual(['alpha', 'beta'])
    expect(host.run('/background be')).toEqual({ type: 'info', text: 'Task beta continues in the background.' })
    expect(host.complete('/background ')).toEqual(['alpha'])
  })

  it('F14: says why it moves nothing: no such task, in the background already, ended, or no slot', () => {
    const host = setUp()
    const { manager, run } = host
    manager.setMaxAsyncTasks(1)
    launch(host, 'gamma', {})
    launch(host, 'alpha')
    const error = (text: string) => ({ type: 'error', text })
    expect(run('/background nobody')).toEqual(error('Task not found: nobody'))
    expect(run('/background gamma')).toEqual(error('Task "gamma" is in the background already.'))
    expect(run('/background')).toEqual(error('Task alpha stays in the foreground: Max async tasks (1) reached.'))
    expect(manager.getTask('alpha')?.isForeground).toBe(true)
    manager.cancelTask('alpha')
    expect(run('/background alpha')).toEqual(error('Task "alpha" has ended: it is cancelled.'))
  })
})

it('commands are plain objects', () => {
  const { commands, register } = setUp()
  register('a')
  expect(commands.map(({ name, subcommands }) => [name, subcommands?.map((sub) => sub.name)])).toEqual([
    ['tasks', ['list']],
    ['task', ['list', 'end', 'answer', 'send']],
    ['background', undefined],
    ['deadline', undefined],
    ['conclude', undefined],
    ['pause', undefined],
    ['resume', undefined],
    ['schedules', undefined],
    ['schedule', ['cancel']],
    ['monitors', undefined],
    ['monitor', ['cancel']],
  ])
  for (const command of commands.flatMap((group) => [group, ...(group.subcommands ?? [])])) {
    expect(command.description).toMatch(/^\w+/)
  }
  expect(commands[1]?.run('end a')).toEqual({ type: 'info', text: 'Cancelled task: a' })
})

it('a command without a manager returns an error', () => {
  const commands = createTaskCommands({
    getAsyncTaskManager: () => {
      throw new Error('not configured')
    },
  })
  expect(runCommandLine(commands, '/tasks')).toEqual({ type: 'error', text: 'list failed: not configured' })
  expect(completeCommandLine(commands, '/task end ')).toEqual([])
})
