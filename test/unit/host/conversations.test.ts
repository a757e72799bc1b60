/** Several conversations in one host. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, type AgentTasksOptions, type ConversationTurn } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock, type ManualClock } from '../../../src/testing/manual-clock.js'
import { tick } from '../../support/limited-tasks.js'

interface Heard {
  readonly id: string
  readonly text: string
}

function createHost(options: Partial<AgentTasksOptions> = {}, clock?: ManualClock) {
  const heard: Heard[] = []
  const errors: unknown[] = []
  const tasks = createAgentTasks({
    ...(clock && { clock }),
    graceMs: 0,
    maxAsyncTasks: -1,
    onError: (...report) => errors.push(report),
    subagents: { echo: ({ goal }) => `done: ${goal}` },
    respond: async ({ conversation: { id }, text }) => {
      await Promise.resolve()
      heard.push({ id, text })
      return `${id} heard ${text}`
    },
    ...options,
  })
  onTestFinished(() => tasks.dispose())
  return { tasks, heard, errors }
}

const settle = async (times = 20): Promise<void> => {
  for (let n = 0; n < times; n += 1) await tick()
}

describe('a conversation', () => {
  it('H7: takes turns, one at a time, and returns what respond returns', async () => {
    const { tasks, heard } = createHost()
    const a = tasks.conversation('a')
    const answers = await Promise.all([a.send('1'), a.send('2'), tasks.conversation('b').send('3')])
    expect(answers).toEqual(['a heard 1', 'a heard 2', 'b heard 3'])
    expect(heard.filter(({ id }) => id === 'a').map(({ text }) => text)).toEqual(['1', '2'])
  })

  it('H7: receives the results of its own tasks in a turn that begins by itself', async () => {
    const { tasks, heard } = createHost()
    tasks.conversation('a').launch('echo', 'for a')
    await tasks.conversation('b').tools.task.execute({ subagent_name: 'echo', goal_prompt: 'for b', async: true })
    await Promise.all([tasks.conversation('a').onIdle(), tasks.conversation('b').onIdle()])
    expect(heard.map(({ id }) => id).sort()).toEqual(['a', 'b'])
    expect(heard.find(({ id }) => id === 'a')?.text).toContain('done: for a')
    expect(heard.find(({ id }) => id === 'b')?.text).toContain('done: for b')
  })

  it('H7: sees no task of another one', async () => {
    const { tasks } = createHost({ subagents: { long: () => new Promise(() => undefined) } })
    const [a, b] = [tasks.conversation('a'), tasks.conversation('b')]
    const { id } = a.launch('long', 'secret of a')
    expect(b.list()).toEqual([])
    expect(a.list().map((task) => task.id)).toEqual([id])
    for (const call of [
      b.tools.check_async_tasks.execute({}),
      b.tools.check_async_tasks.execute({ task_id: id, action: 'peek' }),
      b.tools.check_async_tasks.execute({ task_id: id, action: 'cancel' }),
      b.tools.wait_for_async_tasks.execute({ task_ids: [id] }),
      b.tools.send_to_task.execute({ task_id: id, message: 'm' }),
    ]) {
      expect(JSON.stringify(await call)).not.toContain('secret of a')
    }
    const end = b.commands.find(({ name }) => name === 'task')?.run(`end ${id}`)
    expect(end?.type).toBe('error')
    expect(a.list()[0]?.status).toBe('running')
  })

  it('H7: is the same object until it has been idle for a while, and not while something is owed to it', async () => {
    const clock = createManualClock()
    const { tasks } = createHost({ conversationIdleMs: 1000 }, clock)
    const a = tasks.conversation('a')
    expect(tasks.conversation('a')).toBe(a)
    clock.advance(2000)
    tasks.conversation('b')
    expect(tasks.conversation('a')).not.toBe(a)
    expect(await a.send('still works')).toBe('a heard still works')
  })

  it('refuses other options than those with which it was opened', () => {
    const { tasks } = createHost({ conversationIdleMs: 0 })
    const respond = () => 'mine'
    const a = tasks.conversation('a', { respond })
    expect(tasks.conversation('a', { respond })).toBe(a)
    expect(() => tasks.conversation('a', { respond: () => 'other' })).toThrow('options.respond')
    for (let n = 0; n < 3; n += 1) tasks.conversation(`other-${n}`)
    expect(tasks.conversation('a')).toBe(a)
    expect(() => tasks.conversation('run:x')).toThrow('id: got "run:x"')
    for (const id of ['', ' ', '\u0000', 'a\nb', undefined as never]) {
      expect(() => tasks.conversation(id)).toThrow(
        /^id: got .+, expected a string with visible text and without control characters, and not the name of a run\.$/,
      )
    }
    expect(() => tasks.conversation('a', { respnd: respond } as object)).toThrow('respnd')
  })

  it('H7: receives results with a function of its own in a host without one', async () => {
    const heard: unknown[] = []
    const { tasks, errors } = createHost({ respond: undefined as never })
    const respond = ({ delivery, conversation }: ConversationTurn): void => {
      heard.push(delivery === undefined ? 'a user' : 'a result')
      if (delivery === undefined) conversation.launch('echo', 'later')
    }
    tasks.launch('echo', 'earlier', { owner: 'a' })
    await tick()
    const a = tasks.conversation('a', { respond })
    await a.onIdle()
    await a.send('hello')
    await a.onIdle()
    expect(heard).toEqual(['a result', 'a user', 'a result'])
    const b = tasks.conversation('b', { respond: () => Promise.reject(new Error('the model of b is down')) })
    b.launch('echo', 'never accepted')
    await settle()
    expect(errors).toMatchObject([[{ message: 'the model of b is down' }, { source: 'delivery', owner: 'b' }]])
    await expect(tasks.conversation('c').send('hello')).rejects.toMatchObject({ field: 'respond' })
  })

  it('reports a turn for results that fails, with its owner, also if nobody has opened the conversation', async () => {
    const { tasks, errors } = createHost({ respond: () => Promise.reject(new Error('the model is down')) })
    tasks.launch('echo', 'for main')
    tasks.launch('echo', 'for a', { owner: 'a' })
    await settle()
    expect(errors).toMatchObject(
      ['main', 'a'].map((owner) => [
        { message: 'the model is down' },
        { source: 'delivery', owner, deliveryId: expect.stringContaining('delivery') as string },
      ]),
    )
  })

  it('H7: can be had for each owner in the list, whatever characters it has', async () => {
    const { tasks } = createHost({
      subagents: { long: () => new Promise(() => undefined) },
      openConversation: () => false,
    })
    tasks.manager.launch(
      { subagentName: 'long', goalPrompt: 'g', owner: 'a\nb' },
      { run: () => new Promise(() => undefined) },
    )
    const [listed] = tasks.conversations().conversations
    expect(listed?.id).toBe('a\nb')
    expect(tasks.conversation('a\nb').list()).toHaveLength(1)
    expect(() => tasks.conversation('b\na')).toThrow('id: got')
    await expect(tasks.conversation('a').close({ to: ' ' })).rejects.toMatchObject({ field: 'options.to' })
  })

  it('refuses a send inside its own turn, which would wait for itself', async () => {
    const errors: unknown[] = []
    const { tasks } = createHost({
      respond: async ({ conversation, text }) => {
        if (text === 'inner') return 'inner'
        await conversation.send('inner').catch((error: unknown) => errors.push(error))
        return tasks.conversation('b').send('inner')
      },
    })
    expect(await tasks.conversation('a').send('outer')).toBe('inner')
    expect(errors).toMatchObject([{ code: 'OWN_TURN' }])
    expect(await tasks.conversation('a').send('inner')).toBe('inner')
  })

  it('H7: delivers a result again after its turn has failed', async () => {
    const texts: string[] = []
    const { tasks, errors } = createHost({
      autoTrigger: { retry: { initialMs: 1 } },
      respond: ({ text }) => {
        texts.push(text)
        if (texts.length === 1) throw new Error('the model is away')
      },
    })
    tasks.conversation('a').launch('echo', 'g')
    await tasks.conversation('a').onIdle()
    expect(texts).toHaveLength(2)
    expect(texts[1]).toContain('done: g')
    expect(errors).toMatchObject([[{ message: 'the model is away' }, { owner: 'a' }]])
  })

  it('suspends a turn, which goes on or is abandoned, and nothing else runs meanwhile', async () => {
    const { tasks, heard } = createHost({
      respond: ({ conversation: { id }, text, suspend, ...turn }) => {
        heard.push({ id, text: text.slice(0, 5) })
        if (text === 'ask') suspend()
        return turn.deliveryIds.length
      },
    })
    const a = tasks.conversation('a')
    expect(a.abandon()).toBe(false)
    await expect(a.resume(() => 'x')).rejects.toThrow('a turn that is suspended')
    expect(await a.send('ask')).toBe(0)
    const next = a.send('next')
    a.launch('echo', 'g')
    await settle()
    expect(heard.map(({ text }) => text)).toEqual(['ask'])
    expect(await a.resume(() => 'decided')).toBe('decided')
    expect(await next).toBe(0)
    await a.onIdle()
    expect(heard.map(({ text }) => text)).toEqual(['ask', 'next', 'This '])
    await a.send('ask')
    expect(a.isBusy).toBe(true)
    expect(a.abandon(new Error('no decision'))).toBe(true)
    await a.onIdle()
    expect(a.isBusy).toBe(false)
  })

  it('H7: when it is closed, aborts its turn, cancels its tasks and drops what is owed', async () => {
    let reason: unknown
    const { tasks, heard } = createHost({
      subagents: {
        long: (_input, { signal }) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve('ended'))),
      },
      respond: ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reason = signal.reason
            reject(signal.reason as Error)
          })
        }),
    })
    const a = tasks.conversation('a')
    const sent = a.send('hello').catch((error: unknown) => error)
    const { id } = a.launch('long', 'g')
    await tick()
    await a.close()
    expect(await sent).toMatchObject({ code: 'CONVERSATION_CLOSED' })
    expect(reason).toMatchObject({ code: 'CONVERSATION_CLOSED' })
    expect(tasks.manager.getTask(id)).toMatchObject({
      status: 'cancelled',
      cancelReason: 'its conversation was closed',
    })
    await expect(a.send('x')).rejects.toMatchObject({ code: 'CONVERSATION_CLOSED' })
    expect(tasks.conversation('a')).not.toBe(a)
    expect(heard).toEqual([])
  })

  it('H7: launches no task for another conversation, and none below a task of another one', () => {
    const { tasks } = createHost({
      subagents: {
        long: (_input, { signal }) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve('ended'))),
      },
    })
    const [a, b] = [tasks.conversation('a'), tasks.conversation('b')]
    const { id } = b.launch('long', 'g')
    expect(() => a.launch('long', 'g', { owner: 'b' })).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT', field: 'options.owner' }) as Error,
    )
    expect(() => a.launch('long', 'g', { parentId: id })).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT', field: 'options.parentId' }) as Error,
    )
    expect(tasks.manager.getAllTasks().map((task) => task.id)).toEqual([id])
    const own = a.launch('long', 'g', { owner: 'a' })
    expect(b.list().map((task) => task.id)).toEqual([id])
    expect(a.launch('long', 'g', { parentId: own.id }).record).toMatchObject({ parentId: own.id })
  })

  it('H7: when it is closed, starts none of its tasks that wait', async () => {
    const { tasks } = createHost({ maxAsyncTasks: 1, whenFull: 'queue' })
    const a = tasks.conversation('a')
    tasks.manager.registerTask({ id: 'elsewhere', subagentName: 'x', goalPrompt: 'g', owner: 'a' })
    const { id } = a.launch('echo', 'of a')
    const next = tasks.conversation('b').launch('echo', 'of b')
    const started: string[] = []
    tasks.manager.transitions$.subscribe(({ record }) => {
      if (record.status === 'running') started.push(record.id)
    })
    await a.close()
    expect(tasks.manager.getTask(id)).toMatchObject({ status: 'cancelled' })
    expect(started).toEqual([next.id])
  })

  it('H7: when it is closed with an heir, transfers its tasks and results', async () => {
    const { tasks, heard } = createHost()
    const a = tasks.conversation('a')
    tasks.manager.pause('a')
    a.launch('echo', 'g')
    await a.close({ to: 'b' })
    await tasks.conversation('b').onIdle()
    expect(heard).toMatchObject([{ id: 'b' }])
  })
})

describe('the conversations of a host', () => {
  it('are listed by pages', async () => {
    const { tasks } = createHost({
      subagents: { long: () => new Promise(() => undefined) },
      maxAsyncTasks: 1,
      whenFull: 'queue',
    })
    for (const id of ['c', 'a', 'b']) tasks.conversation(id).launch('long', 'g')
    const page = tasks.conversations({ limit: 2 })
    expect(page).toEqual({
      conversations: [
        { id: 'a', isBusy: false, queued: 1, running: 0, owed: 0 },
        { id: 'b', isBusy: false, queued: 1, running: 0, owed: 0 },
      ],
      next: 'b',
    })
    expect(tasks.conversations({ after: 'b' })).toEqual({
      conversations: [{ id: 'c', isBusy: false, queued: 0, running: 1, owed: 0 }],
    })
  })

  it('H7: get what is owed after a restart, although nobody has opened them', async () => {
    const store = memoryStore()
    const first = createHost({
      store,
      respond: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)),
    })
    first.tasks.conversation('a').launch('echo', 'g')
    await settle()
    await first.tasks.dispose()
    const { tasks, heard } = createHost({ store, keepTurns: 0 })
    await tasks.recovered
    await tasks.manager.onIdle()
    expect(heard).toMatchObject([{ id: 'a' }])
    expect(heard[0]?.text).toContain('done: g')
  })

  it('H7: are opened as openConversation says, or not', async () => {
    const asked: string[] = []
    const { tasks, heard } = createHost({
      openConversation: (id) => {
        asked.push(id)
        return id === 'no' ? false : { respond: ({ text }) => void heard.push({ id: 'own', text }) }
      },
    })
    for (const owner of ['no', 'yes']) {
      tasks.manager.launch({ subagentName: 'echo', goalPrompt: 'g', owner }, () => 'done')
    }
    await settle()
    expect(new Set(asked)).toEqual(new Set(['no', 'yes']))
    expect(heard).toMatchObject([{ id: 'own' }])
    await tasks.conversation('no').onIdle()
    expect(heard).toMatchObject([{ id: 'own' }, { id: 'no' }])
  })

  it('H7: leave nothing behind when they rest', async () => {
    const clock = createManualClock()
    const { tasks } = createHost({}, clock)
    for (let n = 0; n < 50; n += 1) tasks.conversation(`c${n}`).launch('echo', 'g')
    for (let n = 0; n < 20; n += 1) {
      await tick()
      clock.advance(0)
    }
    await tasks.manager.onIdle()
    expect(tasks.conversations({ limit: 100 }).conversations.every(({ isBusy }) => !isBusy)).toBe(true)
    expect(clock.pending).toBe(0)
  })

  it('refuse respond beside triggerAgentTurn', () => {
    expect(() => createHost({ isAgentBusy: () => false, triggerAgentTurn: () => undefined })).toThrow('options.respond')
  })
})
