/** The questions of a run: what the record shows, what ends the wait, and which answers are refused. */
import { describe, expect, it, vi } from 'vitest'
import type { OutputObject, TaskAnswer } from '../../../machines/records.js'
import type { RunContext } from '../../../src/engine/runner.js'
import { InvalidInputError, QuestionWithdrawnError } from '../../../src/errors.js'
import type { TaskQuestionInput } from '../../../src/protocol/task-questions.js'
import type { WordedWaitOptions } from '../../../src/async-tasks/waiting.js'
import { countVisits } from '../../support/visits.js'
import { setUpHost, settle } from '../tools/tool-host.js'

const confirmation: TaskQuestionInput = {
  message: 'Delete it?',
  schema: { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] },
}

/** Launches a run that asks, and keeps what questions$ emits. */
function setUp(run: (context: RunContext) => Promise<unknown>, more: { timeoutMs?: number; graceMs?: number } = {}) {
  const host = setUpHost({ maxAsyncTasks: 2 })
  const emitted: unknown[] = []
  host.manager.questions$.subscribe((event) => emitted.push(event))
  const ended = vi.fn()
  const { id } = host.manager.launch(
    { subagentName: 'asker', goalPrompt: 'g', ...more },
    async (_input, context): Promise<OutputObject> => {
      try {
        return { answer: await run(context) }
      } catch (error) {
        ended(error)
        throw error
      }
    },
  )
  const questions = () => host.manager.getTask(id)?.questions
  const answer = (content: Record<string, unknown>, question = 'question-1') =>
    host.manager.answerTask(id, question, { action: 'accept', content })
  return { ...host, id, emitted, ended, questions, answer, output: () => host.manager.getTask(id)?.output }
}

describe('a run that asks', () => {
  it('T5: stays running, shows its question, and continues with the answer', async () => {
    const { manager, id, emitted, questions, answer, output } = setUp((context) => context.ask(confirmation))
    await settle()
    expect(manager.getTask(id)?.status).toBe('running')
    expect(questions()).toEqual([{ id: 'question-1', askedAt: Date.UTC(2024, 0, 1), ...(confirmation as object) }])
    expect(answer({ confirm: true })).toBe(true)
    expect(questions()).toBeUndefined()
    await settle()
    expect(output()).toEqual({ answer: { action: 'accept', content: { confirm: true } } })
    expect(emitted).toMatchObject([
      { taskId: id, owner: 'main', questions: [{ id: 'question-1' }] },
      { taskId: id, owner: 'main', questions: [] },
    ])
  })

  it('F6: asks nothing with a signal that has aborted, and leaves no listener on one when it is answered', async () => {
    const asked: unknown[] = []
    const { signal } = new AbortController()
    const [add, remove] = [vi.spyOn(signal, 'addEventListener'), vi.spyOn(signal, 'removeEventListener')]
    const { questions, emitted, answer } = setUp(async (context) => {
      const aborted = context.ask('Never?', { signal: AbortSignal.abort(new Error('too late')) })
      asked.push(await aborted.catch((error: unknown) => (error as Error).message))
      return context.ask('Which?', { signal })
    })
    await settle()
    expect([asked, questions()?.map(({ message }) => message)]).toEqual([['too late'], ['Which?']])
    expect(emitted).toHaveLength(1)
    answer({ answer: 'this' })
    await settle()
    expect(add).toHaveBeenCalledOnce()
    expect(remove).toHaveBeenCalledExactlyOnceWith('abort', add.mock.calls[0]?.[1])
  })

  it('is answered with one text when it has no schema', async () => {
    const { questions, answer, output } = setUp((context) => context.ask('Which branch?'))
    await settle()
    expect(questions()?.[0]?.schema).toMatchObject({ properties: { answer: { type: 'string' } }, required: ['answer'] })
    answer({ answer: 'main' })
    await settle()
    expect(output()).toEqual({ answer: { action: 'accept', content: { answer: 'main' } } })
  })

  it('T6: asks several at once, and each is answered once', async () => {
    const { questions, answer, output } = setUp(async (context) => {
      const answers = await Promise.all([context.ask('First?'), context.ask('Second?')])
      return answers.map(({ content }) => content?.['answer'])
    })
    await settle()
    expect(answer({ answer: 'two' }, 'question-2')).toBe(true)
    expect(answer({ answer: 'again' }, 'question-2')).toBe(false)
    expect(questions()?.map(({ id }) => id)).toEqual(['question-1'])
    expect(answer({ answer: 'one' })).toBe(true)
    await settle()
    expect(output()).toEqual({ answer: ['one', 'two'] })
  })

  it('may be answered with what a model may answer: the value of the only field, or the fields', async () => {
    const person = {
      message: 'Who?',
      schema: { type: 'object', properties: { name: { type: 'string' }, age: { type: 'number' } }, required: ['name'] },
    }
    const { manager, id, output } = setUp(async (context) => {
      const answers = await Promise.all([context.ask('Text?'), context.ask(confirmation), context.ask(person)])
      return answers.map(({ content }) => content)
    })
    await settle()
    expect(() => manager.answerTask(id, 'question-2', 'perhaps')).toThrow('answer.content.confirm: got "perhaps"')
    expect(() => manager.answerTask(id, 'question-3', { age: 7 })).toThrow('answer.content.name: got undefined')
    expect(() => manager.answerTask(id, 'question-3', null as never)).toThrow('answer: got null, expected an object.')
    expect(() => manager.answerTask(id, 'question-3', undefined as never)).toThrow('answer: got undefined')
    expect(manager.answerTask(id, 'question-9', 'yes')).toBe(false)
    expect(manager.answerTask(id, 'question-1', 'yes')).toBe(true)
    expect(manager.answerTask(id, 'question-2', true)).toBe(true)
    expect(manager.answerTask(id, 'question-3', { name: 'Ada', age: 36 })).toBe(true)
    await settle()
    expect(output()).toEqual({ answer: [{ answer: 'yes' }, { confirm: true }, { name: 'Ada', age: 36 }] })
  })

  it('may list choices instead of a schema', async () => {
    const { manager, id, questions, output } = setUp((context) =>
      context.ask({ message: 'Which branch?', choices: ['main', 'next'] }),
    )
    await settle()
    expect(questions()?.[0]?.schema).toEqual({
      type: 'object',
      properties: { answer: { type: 'string', title: 'Answer', enum: ['main', 'next'] } },
      required: ['answer'],
    })
    expect(() => manager.answerTask(id, 'question-1', 'other')).toThrow(
      'answer.content.answer: got "other", expected one of "main", "next".',
    )
    expect(manager.answerTask(id, 'question-1', 'next')).toBe(true)
    await settle()
    expect(output()).toEqual({ answer: { action: 'accept', content: { answer: 'next' } } })
  })

  it.each<[object, string]>([
    [{ choices: [] }, 'question.choices: got an empty array, expected at least 1'],
    [{ choices: ['a', 'a'] }, 'expected choices that differ'],
    [{ choices: [''] }, 'question.choices[0]: got ""'],
    [{ choices: ['x'.repeat(501)] }, 'expected at most 500 characters'],
    [
      { choices: Array.from({ length: 101 }, (_, n) => String(n)) },
      'question.choices: got an array of 101, expected at most 100',
    ],
    [{ choices: ['a'], schema: { type: 'object' } }, 'expected no choices next to a schema'],
    [{ choises: ['a'] }, 'the nearest is choices'],
  ])('refuses wrong choices: %#', async (more, message) => {
    const { ended } = setUp((context) => context.ask({ message: 'Which?', ...more }))
    await settle()
    expect((ended.mock.calls[0]?.[0] as Error).message).toContain(message)
  })

  it('may be declined an answer', async () => {
    const { manager, id, output } = setUp((context) => context.ask('Sure?'))
    await settle()
    expect(manager.answerTask(id, 'question-1', { action: 'decline' })).toBe(true)
    await settle()
    expect(output()).toEqual({ answer: { action: 'decline' } })
  })

  it('keeps its question open when the answer does not match, and names the schema', async () => {
    const { manager, id, questions, answer } = setUp((context) => context.ask(confirmation))
    await settle()
    expect(() => answer({ confirm: 'yes' })).toThrow(
      new InvalidInputError('answer.content.confirm', 'yes', 'a boolean'),
    )
    expect(() => manager.answerTask(id, 'question-1', { action: 'maybe' })).toThrow('answer.action')
    expect(questions()).toHaveLength(1)
    expect(manager.answerTask('nobody', 'question-1', { action: 'decline' })).toBe(false)
  })

  it('A2: reads the answer before it looks for the question, which may be withdrawn by then', async () => {
    const { manager, id, ended } = setUp((context) => context.ask(confirmation))
    await settle()
    const content = {
      get confirm() {
        manager.cancelTask(id)
        return true
      },
    }
    expect(manager.answerTask(id, 'question-1', { action: 'accept', content })).toBe(false)
    await settle()
    expect(ended).toHaveBeenCalledExactlyOnceWith(expect.any(QuestionWithdrawnError))
    expect(manager.getTask(id)?.status).toBe('cancelled')
  })

  it.each([
    ['is cancelled', (host: ReturnType<typeof setUp>) => host.manager.cancelTask(host.id)],
    ['is completed by its host', (host: ReturnType<typeof setUp>) => host.manager.completeTask(host.id, {})],
    ['is overdue', (host: ReturnType<typeof setUp>) => host.clock.advance(1_000)],
    ['is disposed of', (host: ReturnType<typeof setUp>) => void host.manager.dispose()],
  ])('T6: has its question withdrawn when its task %s', async (_how, end) => {
    const host = setUp((context) => context.ask('Sure?'), { timeoutMs: 1_000, graceMs: 100 })
    await settle()
    end(host)
    await settle()
    expect(host.ended).toHaveBeenCalledExactlyOnceWith(expect.any(QuestionWithdrawnError))
    expect(host.questions()).toBeUndefined()
    expect(host.answer({ answer: 'late' })).toBe(false)
  })

  it('T6: cannot ask any more once its task has ended', async () => {
    let ask: RunContext['ask'] | undefined
    const { manager, id } = setUp((context) => {
      ask = (question) => context.ask(question)
      return Promise.resolve('done')
    })
    await settle()
    expect(manager.getTask(id)?.status).toBe('completed')
    await expect(ask?.('Still there?')).rejects.toThrow(QuestionWithdrawnError)
    expect(manager.getTask(id)?.questions).toBeUndefined()
  })

  it.each([
    ['nothing', ''],
    ['a schema that is no object', { message: 'm', schema: { type: 'string' } }],
    [
      'a schema that becomes another when it is kept',
      { message: 'm', schema: { type: 'object', toJSON: () => ({ type: 'string' }) } },
    ],
    [
      'a schema that is kept as what cannot be read',
      {
        message: 'm',
        schema: { type: 'object', toJSON: () => ({ type: 'object', properties: { a: { $ref: '#/no' } } }) },
      },
    ],
    [
      'a pattern',
      { message: 'm', schema: { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } } },
    ],
    ['patterns of names', { message: 'm', schema: { type: 'object', patternProperties: { '^(a+)+$': {} } } }],
    ['a reference to itself', { message: 'm', schema: { type: 'object', $ref: '#' } }],
    [
      'references that multiply',
      {
        message: 'm',
        schema: {
          type: 'object',
          $defs: { a: { type: 'string' }, b: { anyOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }] } },
          properties: { answer: { $ref: '#/$defs/b' } },
        },
      },
    ],
    [
      'a pattern deep within',
      { message: 'm', schema: { type: 'object', properties: { a: { anyOf: [{ items: { pattern: 'a' } }] } } } },
    ],
    ['a schema that cannot be read', { message: 'm', schema: { type: 'object', properties: { a: { $ref: '#/no' } } } }],
  ])('may not ask %s', async (_what, question) => {
    const { ended, questions } = setUp((context) => context.ask(question))
    await settle()
    expect(ended).toHaveBeenCalledExactlyOnceWith(expect.any(InvalidInputError))
    expect(questions()).toBeUndefined()
  })

  it('may ask for a property or a value that is called pattern', async () => {
    const schema = { type: 'object', properties: { pattern: { type: 'string', enum: ['pattern'] } } }
    const { questions } = setUp((context) => context.ask({ message: 'Which?', schema }))
    await settle()
    expect(questions()).toMatchObject([{ schema }])
  })

  it('is told which part of its question is invalid', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string', pattern: 'a' } } }
    const { ended } = setUp((context) => context.ask({ message: 'm', schema }))
    await settle()
    expect(ended.mock.calls[0]?.[0]).toMatchObject({
      message: expect.stringMatching(/^question\.schema: got .*, expected a JSON Schema without pattern, /) as string,
    })
  })

  it('ends a wait with endsOnQuestion, and no other', async () => {
    let ask: () => void = () => undefined
    const asked = new Promise<void>((resolve) => (ask = resolve))
    const { manager, id } = setUp((context) => asked.then(() => context.ask('Sure?')))
    const impatient: WordedWaitOptions = { endsOnQuestion: true }
    const patient = vi.fn()
    void manager.waitFor([id]).then(patient)
    const waiting = manager.waitFor([id], impatient)
    await settle()
    ask()
    expect(await waiting).toMatchObject({ settled: [], pending: [{ id, questions: [{ id: 'question-1' }] }] })
    expect(patient).not.toHaveBeenCalled()
    manager.cancelTask(id)
  })

  it('does not end the process when it does not await the answer', async () => {
    const unhandled = vi.fn()
    process.once('unhandledRejection', unhandled)
    const { manager, id } = setUp((context) => {
      void context.ask('Anybody?')
      return new Promise(() => undefined)
    })
    await settle()
    manager.cancelTask(id)
    await new Promise((resolve) => process.nextTick(resolve))
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })

  it('A2: an answer given inside a subscriber counts, and the next notification follows in order', async () => {
    const { manager, id, emitted, output } = setUp((context) => context.ask('Quick?'))
    manager.questions$.subscribe(({ questions: [question] }) => {
      if (question !== undefined) manager.answerTask(id, question.id, { action: 'accept', content: { answer: 'yes' } })
    })
    await settle()
    expect(emitted).toHaveLength(2)
    expect(output()).toMatchObject({ answer: { action: 'accept' } })
  })
})

describe('many open questions', () => {
  it('make one more cost what copying their list costs, and each gets its own answer', async () => {
    const answers = new Map<number, TaskAnswer>()
    let asked = 0
    let ask: () => void = () => undefined
    const { answer, questions } = setUp((context) => {
      ask = () => {
        const n = (asked += 1)
        void context.ask(`question ${n}`).then(
          (given) => answers.set(n, given),
          () => undefined,
        )
      }
      return new Promise(() => undefined)
    })
    await settle()
    const costOfOneMore = (open: number): number => {
      while (asked < open) ask()
      return countVisits(ask)
    }
    const few = costOfOneMore(50)
    expect(costOfOneMore(500)).toBeLessThan(12 * few)
    expect(questions()).toHaveLength(501)
    expect(answer({ answer: 'yes' }, 'question-300')).toBe(true)
    await settle()
    expect([...answers]).toEqual([[300, { action: 'accept', content: { answer: 'yes' } }]])
    expect(questions()).toHaveLength(500)
  })
})
