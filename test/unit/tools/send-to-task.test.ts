/** The tool send_to_task, and the slash commands that answer and send. */
import { describe, expect, it } from 'vitest'
import { completeCommandLine, createTaskCommands, functionRunner, runCommandLine } from '../../../src/index.js'
import type { TaskQuestionInput } from '../../../src/protocol/task-questions.js'
import { createSendToTaskTool } from '../../../src/tools/index.js'
import { setUpHost, settle } from './tool-host.js'

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
    expect(run('/task answer job-reader yes')?.text).toBe('Task job-reader asks nothing.')
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
    expect(run('/task answer asker-1 more')?.text).toBe('Task asker-1 asks nothing.')
  })
})
