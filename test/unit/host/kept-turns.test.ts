/** Conversations whose turns are kept in the store: H8. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, type AgentTasksOptions, type ConversationTurn } from '../../../src/index.js'
import { memoryStore, type MemoryStore, type StoreChange } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { registryOf } from '../../../src/async-tasks/manager.js'

type Kept = Omit<AgentTasksOptions, 'respond'> & { readonly respond?: (turn: ConversationTurn) => unknown }

const said = (content: string) => ({ role: 'assistant', content })
const asked = (content: string) => ({ role: 'user', content })

function hostOn(
  store: MemoryStore | undefined,
  { respond = ({ text }) => [said(`re: ${text}`)], ...options }: Kept = {},
) {
  const errors: unknown[] = []
  const tasks = createAgentTasks({
    subagents: { work: ({ goal }) => goal },
    keepTurns: 100,
    graceMs: 0,
    onError: (error) => errors.push(error),
    ...(store && { store }),
    ...options,
    respond,
  })
  onTestFinished(() => tasks.dispose())
  return { tasks, errors, ann: tasks.conversation('ann') }
}

/** A gate in a turn: `respond` waits in it until the test opens it. */
function gate() {
  let open!: (value?: unknown) => void
  let entered!: () => void
  const opened = new Promise((resolve) => (open = resolve))
  const isIn = new Promise<void>((resolve) => (entered = resolve))
  const pass = async (): Promise<void> => {
    entered()
    await opened
  }
  return { pass, open, isIn }
}

describe('H8: a turn is kept', () => {
  it('H8: by default, the last 100 of each conversation', async () => {
    const { ann } = hostOn(memoryStore(), { keepTurns: undefined as never })
    for (let n = 0; n <= 100; n += 1) await ann.send(`message ${n}`)
    expect((await ann.turns()).map(({ seq }) => seq)).toEqual(Array.from({ length: 100 }, (_, n) => n + 2))
  })

  it.each<[string, Partial<AgentTasksOptions>]>([
    ['with keepTurns: 0', { store: memoryStore(), keepTurns: 0 }],
    ['by default, if the host keeps its messages', { store: memoryStore(), wasDelivered: () => true }],
    ['by default, with a store that cannot', { store: { ...memoryStore(), turns: undefined } }],
    ['by default, without a store', {}],
  ])('H8: not %s', async (_what, options) => {
    const tasks = createAgentTasks({ ...options, respond: () => 'any value' })
    onTestFinished(() => tasks.dispose())
    const ann = tasks.conversation('ann')
    expect(await ann.send('one')).toBe('any value')
    expect(await ann.turns()).toEqual([])
    await expect(ann.send('two', { id: 'm' })).rejects.toMatchObject({ field: 'options.id' })
  })

  it('H8: with its message and what respond has returned, and the next turn has them', async () => {
    const seen: unknown[][] = []
    const store = memoryStore()
    const { ann } = hostOn(store, {
      respond: ({ text, messages }) => {
        seen.push(messages)
        return [said(`re: ${text}`)]
      },
    })
    expect(await ann.send('one')).toEqual([said('re: one')])
    expect(await ann.send('two')).toEqual([said('re: two')])
    expect(seen).toEqual([[asked('one')], [asked('one'), said('re: one'), asked('two')]])
    expect(await ann.messages()).toEqual([asked('one'), said('re: one'), asked('two'), said('re: two')])
    const next = hostOn(store.copy())
    expect(await next.ann.messages()).toEqual(await ann.messages())
    expect(await next.tasks.conversation('bob').messages()).toEqual([])
  })

  it('H8: with its number and the id of its message, which stay when earlier turns are removed', async () => {
    const { ann } = hostOn(memoryStore(), { keepTurns: 2 })
    await ann.send('one', { id: 'm1' })
    await ann.send('two', { id: 'm2' })
    await ann.send('three')
    expect(await ann.turns()).toEqual([
      expect.objectContaining({ seq: 2, messageId: 'm2', messages: [asked('two'), said('re: two')] }),
      expect.objectContaining({ seq: 3, messages: [asked('three'), said('re: three')] }),
    ])
    const { tasks } = hostOn(memoryStore(), { keepTurns: undefined as never })
    expect(await tasks.conversation('ann').turns()).toEqual([])
  })

  it('H8: in one write with the results that it has delivered', async () => {
    const store = memoryStore()
    const writes: (readonly StoreChange[])[] = []
    const { tasks, ann } = hostOn({
      ...store,
      write: async (changes) => {
        writes.push(changes)
        await store.write(changes)
      },
    })
    ann.launch('work', 'goal', { id: 'a' })
    await ann.onIdle()
    const of = writes.filter((changes) => changes.some(({ table }) => table === 'turns'))
    expect(of).toHaveLength(1)
    expect(of[0]).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ table: 'tasks', put: expect.objectContaining({ delivery: 'delivered' }) as object }),
        expect.objectContaining({ table: 'deliveries', remove: expect.any(String) as string }),
      ]),
    )
    expect(store.contents().deliveries).toEqual([])
    expect(registryOf(tasks.manager).ledger.countOf('owed', 'ann')).toBe(0)
  })

  it('H8: not when respond fails: its results are delivered again, unmarked', async () => {
    const clock = createManualClock()
    const texts: string[] = []
    const { ann, errors } = hostOn(memoryStore(), {
      clock,
      respond: ({ text }) => {
        texts.push(text)
        if (texts.length === 1) throw new Error('the model is away')
        return []
      },
    })
    ann.launch('work', 'result a')
    await expect.poll(() => (clock.advance(100), texts.length)).toBe(2)
    expect(errors).toEqual([new Error('the model is away')])
    expect(texts[1]).toContain('result a')
    expect(texts[1]).not.toMatch(/repeat/i)
    await ann.onIdle()
    expect(await ann.messages()).toEqual([asked(texts[1] ?? '')])
  })

  it.each([
    { what: 'no array', answer: 'text' },
    { what: 'nothing', answer: undefined },
    { what: 'texts', answer: ['text'] },
    { what: 'a bigint', answer: [{ large: 1n }] },
  ])('H8: not when respond returns $what', async ({ answer }) => {
    const { ann } = hostOn(memoryStore(), { respond: () => answer })
    await expect(ann.send('one')).rejects.toMatchObject({ code: 'INVALID_INPUT', field: 'the result of respond' })
    expect(await ann.messages()).toEqual([])
  })

  it('H8: as JSON has it at the end of the turn', async () => {
    const message = { role: 'assistant', content: [{ at: new Date(0) }], left: undefined }
    const { ann } = hostOn(memoryStore(), { respond: () => [message] })
    await ann.send('one')
    message.role = 'changed'
    expect(await ann.messages()).toEqual([
      asked('one'),
      { role: 'assistant', content: [{ at: '1970-01-01T00:00:00.000Z' }] },
    ])
  })

  it('H8: not when it was cancelled, although respond has returned', async () => {
    const { pass, open, isIn } = gate()
    const { ann } = hostOn(memoryStore(), {
      respond: async () => {
        await pass()
        return [said('late')]
      },
    })
    const controller = new AbortController()
    const answer = ann.send('one', { signal: controller.signal })
    await isIn
    controller.abort(new Error('enough'))
    open()
    await expect(answer).rejects.toThrow('enough')
    expect(await ann.messages()).toEqual([])
  })

  it.each([{}, { id: 'm1' }])('H8: before send resolves (%s)', async (options) => {
    const store = memoryStore()
    const { pass, open, isIn } = gate()
    const { ann } = hostOn({
      ...store,
      write: async (changes) => {
        if (changes.some(({ table }) => table === 'turns')) await pass()
        await store.write(changes)
      },
    })
    let isAnswered = false
    const answer = ann.send('one', options).then(() => (isAnswered = true))
    await isIn
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect([isAnswered, store.contents().turns]).toEqual([false, []])
    open()
    await answer
    expect(store.contents().turns).toHaveLength(1)
  })

  it('H8: not when it fails after a tool call has returned results: they are delivered again, unmarked', async () => {
    const texts: string[] = []
    const clock = createManualClock()
    const { ann, tasks } = hostOn(memoryStore(), {
      clock,
      subagents: { work: () => 'result a' },
      respond: async ({ text, conversation }) => {
        texts.push(text)
        if (text !== 'collect') return []
        conversation.launch('work', 'goal', { id: 'a' })
        const found = await conversation.tools.wait_for_async_tasks.execute({ task_ids: ['a'] })
        expect(JSON.stringify(found)).toContain('result a')
        throw new Error('the model is away')
      },
    })
    await expect(ann.send('collect')).rejects.toThrow('the model is away')
    await expect.poll(() => (clock.advance(100), texts.length)).toBe(2)
    expect(texts[1]).toContain('result a')
    expect(texts[1]).not.toMatch(/repeat/)
    await ann.onIdle()
    expect(tasks.manager.getTask('a')).toMatchObject({ delivery: 'delivered' })
  })

  it('H8: or its results are owed, whenever the host is disposed', async () => {
    const ends = new Set<string>()
    for (let microtasks = 0; microtasks < 12; microtasks += 1) {
      const store = memoryStore()
      const { tasks, ann } = hostOn(store, {
        respond: async () => {
          void (async () => {
            for (let n = 0; n < microtasks; n += 1) await Promise.resolve()
            await tasks.dispose()
          })()
          await Promise.resolve()
          return []
        },
      })
      ann.launch('work', 'goal', { id: 'a' })
      await expect.poll(() => tasks.manager.getActiveTasks()).toEqual([])
      await expect.poll(() => ann.isBusy).toBe(false)
      await tasks.dispose()
      const { turns, tasks: rows } = store.contents()
      ends.add(`${turns.length} ${rows[0]?.delivery === 'delivered' ? 'delivered' : 'owed'}`)
    }
    expect([...ends].sort()).toEqual(['0 owed', '1 delivered'])
  })

  it('H8: not when its delivery takes too long: its results are delivered again, unmarked', async () => {
    const texts: string[] = []
    const clock = createManualClock()
    const { ann } = hostOn(memoryStore(), {
      clock,
      autoTrigger: { deliveryTimeoutMs: 1000 },
      respond: ({ text, signal }) => {
        texts.push(text)
        if (texts.length > 1) return []
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve([])))
      },
    })
    ann.launch('work', 'result a')
    await expect.poll(() => (clock.advance(100), texts.length)).toBe(2)
    expect(texts[1]).toContain('result a')
    expect(texts[1]).not.toMatch(/repeat/)
    await ann.onIdle()
    expect(await ann.messages()).toEqual([asked(texts[1] ?? '')])
  })

  it('H8: at most keepTurns of a conversation', async () => {
    const store = memoryStore()
    const { ann, tasks } = hostOn(store, { keepTurns: 2, respond: () => [] })
    for (const text of ['1', '2', '3']) await ann.send(text)
    await tasks.conversation('bob').send('4')
    expect(await ann.messages()).toEqual([asked('2'), asked('3')])
    expect(
      store
        .contents()
        .turns.map(({ id }) => id)
        .sort(),
    ).toEqual(['1/bob', '2/ann', '3/ann'])
  })

  it('H8: as a whole when it was suspended', async () => {
    const store = memoryStore()
    const { ann } = hostOn(store, {
      respond: ({ suspend }) => {
        suspend()
        return [said('may I?')]
      },
    })
    const answer = ann.send('one')
    await expect.poll(() => ann.isBusy).toBe(true)
    await answer
    expect(store.contents().turns).toEqual([])
    await ann.resume(() => [said('done')])
    expect(await ann.messages()).toEqual([asked('one'), said('may I?'), said('done')])
  })

  it('H8: until its conversation is closed', async () => {
    const store = memoryStore()
    const { ann, tasks } = hostOn(store)
    await ann.send('one')
    await tasks.conversation('bob').send('two')
    await ann.close()
    expect(store.contents().turns.map(({ owner }) => owner)).toEqual(['bob'])
    expect(await tasks.conversation('ann').messages()).toEqual([])
  })
})

describe('H8: a message with an id', () => {
  it('H8: has one turn, however often it is sent', async () => {
    const { pass, open, isIn } = gate()
    let turns = 0
    const { ann } = hostOn(memoryStore(), {
      respond: async ({ text }) => {
        turns += 1
        await pass()
        return [said(`re: ${text}`)]
      },
    })
    const first = ann.send('one', { id: 'm1' })
    await isIn
    const second = ann.send('one', { id: 'm1' })
    open()
    expect(await Promise.all([first, second])).toEqual([[said('re: one')], [said('re: one')]])
    expect(await ann.send('one', { id: 'm1' })).toEqual([said('re: one')])
    expect(turns).toBe(1)
    await expect(ann.send('other', { id: 'm1' })).rejects.toMatchObject({ field: 'options.id' })
  })

  it('H8: is stored before its turn, which the next process takes', async () => {
    const store = memoryStore()
    const { pass, isIn } = gate()
    const { ann } = hostOn(store, { respond: pass })
    ann.send('one', { id: 'm1' }).catch(() => undefined)
    ann.send('two', { id: 'm2' }).catch(() => undefined)
    await isIn
    expect(store.contents().featureStates.map(({ data }) => data['text'])).toEqual(['one', 'two'])
    const copy = store.copy()
    const next = hostOn(copy)
    await expect.poll(() => copy.contents().turns.length).toBe(2)
    expect(await next.ann.messages()).toEqual([asked('one'), said('re: one'), asked('two'), said('re: two')])
    expect(copy.contents().featureStates).toEqual([])
    expect(await next.ann.send('two', { id: 'm2' })).toEqual([said('re: two')])
  })

  it('H8: says when it is stored, before its turn has ended', async () => {
    const store = memoryStore()
    const { pass, open, isIn } = gate()
    const { ann } = hostOn(store, { respond: async () => (await pass(), []) })
    const storedAt: unknown[] = []
    const onStored = (): void =>
      void storedAt.push(store.contents().featureStates.length, store.contents().turns.length)
    const answer = ann.send('one', { id: 'm1', onStored })
    await isIn
    expect(storedAt).toEqual([1, 0])
    open()
    await answer
    await ann.send('one', { id: 'm1', onStored })
    expect(storedAt).toEqual([1, 0, 1, 1])
    await expect(ann.send('one', { onStored })).rejects.toMatchObject({ field: 'options.onStored' })
  })

  it('H8: reports what onStored throws', async () => {
    const { ann, errors } = hostOn(memoryStore())
    const onStored = (): void => {
      throw new Error('the client has gone')
    }
    await ann.send('one', { id: 'm1', onStored })
    expect(errors).toEqual([new Error('the client has gone')])
  })

  it('H8: is dropped when its turn fails, so that it can be sent again', async () => {
    const store = memoryStore()
    let turns = 0
    const { ann } = hostOn(store, {
      respond: () => {
        turns += 1
        if (turns === 1) throw new Error('the model is away')
        return []
      },
    })
    await expect(ann.send('one', { id: 'm1' })).rejects.toThrow('the model is away')
    await expect.poll(() => store.contents().featureStates).toEqual([])
    expect(await ann.send('one', { id: 'm1' })).toEqual([])
    expect(turns).toBe(2)
  })

  it('H8: of an earlier process stays stored when its turn fails', async () => {
    const store = memoryStore()
    const { pass, isIn } = gate()
    const first = hostOn(store, { respond: pass })
    first.ann.send('one', { id: 'm1' }).catch(() => undefined)
    await isIn
    const copy = store.copy()
    let turns = 0
    const next = hostOn(copy, {
      respond: () => {
        turns += 1
        if (turns === 1) throw new Error('the model is away')
        return []
      },
    })
    await expect.poll(() => next.errors).toEqual([new Error('the model is away')])
    expect(copy.contents().featureStates).toHaveLength(1)
    expect(await next.ann.send('one', { id: 'm1' })).toEqual([])
    expect(copy.contents().featureStates).toEqual([])
  })

  it('H8: stays stored when the host is disposed before its turn has ended', async () => {
    const store = memoryStore()
    const { pass, open, isIn } = gate()
    const { tasks, ann } = hostOn(store, { respond: pass })
    const answer = ann.send('one', { id: 'm1' })
    await isIn
    const disposed = tasks.dispose()
    open()
    await expect(answer).rejects.toMatchObject({ code: 'DISPOSED' })
    await disposed
    expect(store.contents().featureStates).toHaveLength(1)
  })

  it('H8: is refused when it is too large', async () => {
    const { ann } = hostOn(memoryStore())
    await expect(ann.send('x'.repeat(1024 * 1024), { id: 'm1' })).rejects.toMatchObject({ field: 'text' })
  })

  it('H8: rejects when the store is lost', async () => {
    const store = memoryStore()
    const lost = new AbortController()
    const { ann } = hostOn({
      ...store,
      lost: lost.signal,
      write: (changes) => {
        if (!changes.some(({ table }) => table === 'turns')) return store.write(changes)
        lost.abort(new Error('another process has it'))
        return Promise.reject(new Error('another process has it'))
      },
    })
    await expect(ann.send('one', { id: 'm1' })).rejects.toThrow('another process has it')
  })

  it('H8: is refused when too many wait', async () => {
    const { pass, isIn } = gate()
    const { ann } = hostOn(memoryStore(), { respond: pass })
    const sent = Array.from({ length: 1000 }, (_, n) => ann.send('one', { id: `m${n}` }))
    for (const answer of sent) answer.catch(() => undefined)
    await isIn
    await expect(ann.send('one', { id: 'more' })).rejects.toMatchObject({ code: 'INPUT_LIMIT' })
  })

  it('H8: needs keepTurns, and that needs a store and respond', async () => {
    const { ann } = hostOn(undefined, { keepTurns: undefined as never })
    await expect(ann.send('one', { id: 'm1' })).rejects.toMatchObject({ field: 'options.id' })
    for (const keepTurns of [-1, 1.5, NaN, '2' as never]) {
      const shown = typeof keepTurns === 'string' ? '"2"' : String(keepTurns)
      const message = `options.keepTurns: got ${shown}, expected an integer >= 0, or Infinity.`
      expect(() => hostOn(memoryStore(), { keepTurns })).toThrow(
        expect.objectContaining({ code: 'INVALID_INPUT', field: 'options.keepTurns', message }),
      )
    }
    expect(() => hostOn(undefined)).toThrow('options.keepTurns: got 100, expected no value without a store.')
    const { turns: _, ...without } = memoryStore()
    expect(() => hostOn(without as MemoryStore)).toThrow('expected no value without a store with `turns`.')
    expect(() => createAgentTasks({ keepTurns: 1, store: memoryStore() })).toThrow(
      'options.respond: got undefined, expected a value, because keepTurns has one.',
    )
  })
})

it('H8: a message that a killed process had sent is delivered again, unmarked, and one that was kept is not', async () => {
  const store = memoryStore()
  const { pass, isIn } = gate()
  let turns = 0
  const { ann } = hostOn(store, {
    respond: async () => {
      turns += 1
      if (turns === 2) await pass()
      return []
    },
  })
  ann.launch('work', 'result a')
  await ann.onIdle()
  ann.launch('work', 'result b')
  await isIn
  const copy = store.copy()
  const next = hostOn(copy, { respond: () => [] })
  await expect.poll(() => copy.contents().turns.length).toBe(2)
  const messages = (await next.ann.messages()) as { content: string }[]
  expect(messages.map(({ content }) => content)).toEqual([
    expect.stringContaining('result a'),
    expect.stringContaining('result b'),
  ])
  expect(messages[1]?.content).not.toMatch(/repeat|result a/i)
})
