/** The tool send_to_task, and the slash commands that answer and send. */
import { describe, expect, it } from 'vitest'
import {
  completeCommandLine,
  functionRunner,
  runCommandLine,
  type AsyncTaskManagerOptions,
} from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import type { TaskQuestionInput } from '../../../src/protocol/task-questions.js'
import { createCheckAsyncTasksTool, createSendToTaskTool } from '../../../src/tools/index.js'
import { setUpHost, settle } from './tool-host.js'
import { createTaskCommands } from '../../../src/parts.js'

function setUp() {
  const host = setUpHost()
  const { getAsyncTaskManager, manager } = host
  const taken: string[] = []
  const answers: unknown[] = []
  const reader = functionRunner(
    async (_input, { messages }) => {
      for await (const message of messages) taken.push(message)
      return 'done'
    },
    { takesMessages: true },
  )
  const asker = functionRunner(async (_input, context) => {
    const ask = (question: TaskQuestionInput) => context.ask(question)
    answers.push(await ask('Which branch?'))
    const schema = { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] }
    answers.push(...(await Promise.all([ask({ message: 'Sure?', schema }), ask('Why?')])))
    return 'done'
  })
  const launch = (id: string, runner: typeof reader) =>
    manager.launch({ id, subagentName: 's', goalPrompt: 'g' }, runner)
  const commands = createTaskCommands({ getAsyncTaskManager })
  const tool = createSendToTaskTool({ getAsyncTaskManager })
  return {
    ...host,
    taken,
    answers,
    reader,
    asker,
    launch,
    tool,
    run: (line: string) => runCommandLine(commands, line),
    complete: (line: string) => completeCommandLine(commands, line),
  }
}

describe('send_to_task', () => {
  it('F7: sends a message, and says that it did', async () => {
    const { launch, reader, tool, taken } = setUp()
    launch('reader-1', reader)
    const result = await tool.execute({ task_id: 'reader-1', message: 'also the tests' })
    await settle()
    expect(taken).toEqual(['also the tests'])
    expect(result).toEqual({
      llmContent: 'Sent to task reader-1.',
      returnDisplay: 'Sent to task reader-1.',
      metadata: { id: 'reader-1', sent: true },
    })
    expect(tool.describe({ task_id: 'reader-1', message: 'm' })).toBe("Send a message to async task 'reader-1'")
  })

  it('F7: says why a message was not sent', async () => {
    const { launch, asker, tool, manager } = setUp()
    launch('asker-1', asker)
    const refused = await tool.execute({ task_id: 'asker-1', message: 'm' })
    expect(refused).toMatchObject({
      llmContent: 'Not sent: Task "asker-1" takes no messages.',
      error: { type: 'execution_failed' },
      metadata: { sent: false },
    })
    expect((await tool.execute({ task_id: 'nobody', message: 'm' })).error?.message).toBe('Task not found')
    expect((await tool.execute({ task_id: 'asker-1', message: '' })).error?.type).toBe('parameter_validation')
    expect((await tool.execute({ task_id: 'ask', message: 'm' })).llmContent).toContain('use its full ID')
    manager.cancelTask('asker-1')
    await settle()
  })
})

describe('send_to_task on a task that has ended', () => {
  const ended = async (options: AsyncTaskManagerOptions = {}) => {
    const host = setUpHost(options)
    const { manager, getAsyncTaskManager } = host
    const goals: string[] = []
    const runner = functionRunner(({ goal }, { previous }) => {
      goals.push(`${previous?.goal ?? ''}>${goal}`)
      return 'done'
    })
    const start = async (id: string, owner: string) => {
      manager.launch({ id, subagentName: 's', goalPrompt: `goal of ${id}`, owner }, runner)
      await manager.waitFor([id])
    }
    await start('a-1', 'alice')
    await start('b-1', 'bob')
    const tool = createSendToTaskTool({ getAsyncTaskManager, owner: 'alice' })
    return { ...host, goals, start, tool, runner }
  }

  it('U1: continues it as a new task of the same owner', async () => {
    const { tool, manager, goals } = await ended()
    const result = await tool.execute({ task_id: 'a-1', message: 'more' })
    const id = manager.getAllTasks().at(-1)!.id
    const text = `Task ${id} continues task a-1, which had ended. Its result is delivered when it has ended, too.`
    expect(result).toEqual({ llmContent: text, returnDisplay: text, metadata: { id, sent: true, continues: 'a-1' } })
    await settle()
    expect(manager.getTask(id)).toMatchObject({ owner: 'alice', continues: 'a-1' })
    expect(goals.at(-1)).toBe('goal of a-1>more')
    expect(manager.getPendingNotifications('alice').map((task) => task.id)).toEqual([id])
    expect(manager.getPendingNotifications('bob')).toEqual([])
    const peek = await createCheckAsyncTasksTool({ getAsyncTaskManager: () => manager }).execute({ task_id: id })
    expect(peek.llmContent).toContain('"continues": "a-1"')
  })

  it('U1: does not continue the task of another owner, nor one whose name is not certain', async () => {
    const { tool, manager } = await ended()
    expect((await tool.execute({ task_id: 'b-1', message: 'm' })).error?.message).toBe('Task not found')
    expect((await tool.execute({ task_id: 'a', message: 'm' })).llmContent).toContain('use its full ID')
    expect(manager.getAllTasks()).toHaveLength(2)
  })

  it('U1: says why it cannot', async () => {
    const { tool, manager, register } = await ended({ maxAsyncTasks: 1 })
    register('busy', { owner: 'bob' })
    expect((await tool.execute({ task_id: 'a-1', message: 'm' })).error?.message).toContain(
      'Max async tasks (1) reached',
    )
    register('own', { owner: 'alice' })
    manager.completeTask('own', {})
    const { error } = await tool.execute({ task_id: 'own', message: 'm' })
    expect(error?.message).toContain('Task "own" cannot be continued: no subagent "helper" is known.')
  })

  it('U1: continues one of the history by its whole id, and only for its owner', async () => {
    const { tool, manager, start, goals, runner, getAsyncTaskManager } = await ended({
      store: memoryStore(),
      findRunner: () => runner,
      maxAsyncTasks: 2,
    })
    for (let n = 0; n < 10; n += 1) {
      await start(`later-${n}`, 'alice')
      for (const { id } of manager.getAllTasks()) manager.markNotified(id)
    }
    await manager.stored()
    expect(manager.getTask('a-1')).toBeUndefined()
    const other = createSendToTaskTool({ getAsyncTaskManager, owner: 'bob' })
    expect((await other.execute({ task_id: 'a-1', message: 'm' })).error?.message).toBe('Task not found')
    expect((await tool.execute({ task_id: 'a-1', message: 'm' })).metadata).toMatchObject({ continues: 'a-1' })
    await settle()
    expect(goals.at(-1)).toBe('goal of a-1>m')
    expect(manager.getAllTasks().filter(({ continues }) => continues !== undefined)).toMatchObject([{ owner: 'alice' }])
  })

  it('U1: /task send does so for a person, or says why not', async () => {
    const { manager, getAsyncTaskManager, register } = await ended()
    const run = (line: string) => runCommandLine(createTaskCommands({ getAsyncTaskManager }), line)
    expect(run('/task send a-1 and now')?.text).toBe(`Task ${manager.getAllTasks().at(-1)!.id} continues task a-1.`)
    register('own')
    manager.completeTask('own', {})
    expect(run('/task send own m')).toEqual({
      type: 'error',
      text: 'Not sent: Task "own" cannot be continued: no subagent "helper" is known.',
    })
    await settle()
  })
})

describe('/task send and /task answer', () => {
  it('F7: sends the rest of the line', async () => {
    const { launch, reader, run, taken } = setUp()
    launch('reader-1', reader)
    expect(run('/task send reader-1 use  two spaces')).toEqual({ type: 'info', text: 'Sent to task reader-1.' })
    await settle()
    expect(taken).toEqual(['use  two spaces'])
    expect(run('/task send reader-1')?.text).toBe('Usage: /task send <task_id> <text>')
    expect(run('/task send nobody m')?.text).toBe('Task not found: nobody')
  })

  it('completes the ids of those that run, or ask, and lists the candidates of a short one', async () => {
    const { launch, asker, reader, run, complete } = setUp()
    launch('job-reader', reader)
    launch('job-asker', asker)
    await settle()
    expect(complete('/task send job')).toEqual(['job-read', 'job-aske'])
    expect(complete('/task answer job')).toEqual(['job-aske'])
    const text = 'Ambiguous task ID. Did you mean:\n- job-read (s) - running\n- job-aske (s) - running'
    expect(run('/task send job m')).toEqual({ type: 'error', text })
    expect(run('/task answer job-reader yes')?.text).toBe('Task job-reader has no open question.')
  })

  it('F6: shows the questions, and takes answers of a person', async () => {
    const { launch, asker, run, answers } = setUp()
    launch('asker-1', asker)
    await settle()
    expect(run('/tasks')?.text).toBe('[RUNNING] [asker-1] s (0s) - g\n  asks (question-1): Which branch?')
    expect(run('/task answer asker-1')?.text).toBe('Usage: /task answer <task_id> [question_id] <text>')
    expect(run('/task answer asker-1 the main one')?.text).toBe('Answered question-1 of task asker-1.')
    await settle()
    expect(run('/task answer asker-1 yes')?.text).toContain('has several questions: question-2, question-3.')
    expect(run('/task answer asker-1 question-2 perhaps')).toMatchObject({ type: 'error' })
    expect(run('/task answer asker-1 question-2 true')?.text).toBe('Answered question-2 of task asker-1.')
    expect(run('/task answer asker-1 {"answer":"because"}')?.text).toBe('Answered question-3 of task asker-1.')
    await settle()
    expect(answers.map((answer) => (answer as { content: unknown }).content)).toEqual([
      { answer: 'the main one' },
      { sure: true },
      { answer: '{"answer":"because"}' },
    ])
    expect(run('/task answer asker-1 more')?.text).toBe('Task asker-1 has no open question.')
  })
})
