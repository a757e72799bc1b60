/** What the page keeps of questions that are closed, and of commands that were given up. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, type RunContext } from 'agent-tasks'
import { InstanceManager, instanceTool, localInstance, TaskManager } from 'agent-tasks/server'
import { closedQuestion } from '../../../src/page/closed-questions.js'
import { Journal, type JournalEntry } from '../../../src/page/journal.js'
import { Versions } from '../../../src/page/versioned.js'
import type { PageTaskDetail } from '../../../src/page/wire.js'
import { startPage } from './test-page.js'

async function withAsker(manager = new AsyncTaskManager(-1)) {
  const page = await startPage({ tasks: manager })
  let context: RunContext | undefined
  const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x' }, (_input, given) => {
    context = given
    return new Promise(() => undefined)
  })
  await expect.poll(() => context).toBeDefined()
  const detail = async (): Promise<PageTaskDetail> =>
    (await page.get(`tasks/async:${id}`)).body as unknown as PageTaskDetail
  return { manager, id, ask: (...asked: Parameters<RunContext['ask']>) => context!.ask(...asked), detail, ...page }
}

describe('a question that is closed', () => {
  it('has its answer, and says who has given it', async () => {
    const { manager, id, ask, detail, post } = await withAsker()
    void ask('Which one?')
    void ask('How many?')
    const body = { questionId: 'question-2', answer: { action: 'accept', content: { answer: 'three' } } }
    expect((await post(`tasks/async:${id}/answer`, body)).status).toBe(200)
    manager.answerTask(id, 'question-1', { action: 'decline' })
    void ask('Really?')
    manager.answerTask(id, 'question-3', { action: 'cancel' })
    const { answers = [], events, task } = await detail()
    expect(answers.map(({ message, action, by, content }) => [message, action, by, content?.text])).toEqual([
      ['How many?', 'accept', 'page', '{"answer":"three"}'],
      ['Which one?', 'decline', 'host', undefined],
      ['Really?', 'cancel', 'host', undefined],
    ])
    expect(answers.every(({ askedAt, closedAt }) => closedAt >= askedAt)).toBe(true)
    expect(events.map(({ event, detail: words }) => [event, words])).toEqual([
      ...[
        ['started', undefined],
        ['asked', 'Which one?'],
        ['asked', 'How many?'],
      ],
      ...[
        ['answered', 'How many?'],
        ['declined', 'Which one?'],
        ['asked', 'Really?'],
        ['dismissed', 'Really?'],
      ],
    ])
    expect(task.state).toBe('running')
  })

  it('was withdrawn when nobody has answered it, whatever another task was told', async () => {
    const { manager, ask, detail } = await withAsker()
    const other = await withAsker(manager)
    const abort = new AbortController()
    ask('Which one?', { signal: abort.signal }).catch(() => undefined)
    void other.ask('Another one?')
    manager.answerTask(other.id, 'question-1', { action: 'accept', content: { answer: 'no' } })
    manager.answerTask('none', 'question-1', { action: 'decline' })
    abort.abort()
    expect((await detail()).answers).toMatchObject([{ message: 'Which one?', action: 'withdrawn' }])
    expect((await detail()).answers?.[0]).not.toHaveProperty('by')
  })

  it('G2: is kept in part when it is long, and only the last 20 are, in the bytes of the journal', () => {
    const long = closedQuestion(
      { id: 'q', message: 'm'.repeat(9000), schema: {}, askedAt: 1 },
      { action: 'accept', content: { answer: 'ä'.repeat(9000) } },
      2,
    )
    expect([long.message.length, long.content?.text.length, long.content?.isCut]).toEqual([2000, 4000, true])
    const journal = new Journal<JournalEntry>({
      versions: new Versions(),
      maxTasks: 10,
      maxBytes: 1e9,
      onForgotten: () => undefined,
    })
    const entry: JournalEntry = {
      key: 'async:a',
      kind: 'async',
      isEnded: false,
      state: 'running',
      heldBytes: 0,
      row: () => ({ id: 'a', title: 'a', group: 'main', createdAt: 0 }),
    }
    journal.add(entry)
    const sizes = Array.from({ length: 30 }, (_, at) => {
      journal.update(entry, { at, answer: { ...long, id: `q${at % 10}` } })
      return journal.bytes
    })
    expect(journal.answersOf('async:a')).toHaveLength(20)
    expect(sizes[1]! - sizes[0]!).toBeGreaterThan(6000)
    expect([sizes[29], sizes[25]]).toEqual([sizes[19], sizes[19]])
  })
})

describe('a command that was given up', () => {
  it('was cancelled with its task, or has failed; one that has never started was not run', async () => {
    const instances = new InstanceManager()
    const hang = instanceTool({
      name: 'hang',
      execute: (_input, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
    })
    instances.connect(localInstance({ id: 'calc', tools: [hang] }))
    const taskManager = new TaskManager({ instances, abortGraceMs: 0 })
    onTestFinished(async () => {
      await taskManager.dispose()
      await instances.dispose()
    })
    const { get, read } = await startPage({ taskManager })
    const commands = [{ tool_name: 'hang' }, { tool_name: 'hang' }]
    const submit = (): string => {
      const submitted = taskManager.submitTask({ type: 'task_submit', task_name: 'x', instanceId: 'calc', commands })
      return 'taskId' in submitted ? submitted.taskId : ''
    }
    const states = async (id: string): Promise<unknown> => {
      const reader = await read()
      await reader.until(({ tasks }) => tasks.get(`command:${id}`)?.endedAt !== undefined)
      const { commands: shown = [], task } = (await get(`tasks/command:${id}`)).body as unknown as PageTaskDetail
      expect(task.commands?.map(({ state }) => state)).toEqual(shown.map(({ state }) => state))
      return shown.map(({ state, error }) => [state, error])
    }
    const cancelled = submit()
    await expect.poll(() => taskManager.getTask(cancelled)?.status).toBe('running')
    taskManager.cancelTask(cancelled, 'enough')
    expect(await states(cancelled)).toEqual([
      ['cancelled', 'Task cancelled: enough'],
      ['skipped', undefined],
    ])
    const lost = submit()
    await expect.poll(() => taskManager.getTask(lost)?.status).toBe('running')
    await instances.disconnect('calc', 'gone')
    expect(await states(lost)).toEqual([
      ['failed', expect.any(String)],
      ['skipped', undefined],
    ])
  })
})
