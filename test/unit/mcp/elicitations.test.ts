/** Which questions are asked by a form. */
import { AsyncTaskManager } from 'agent-tasks'
import { expect, it, vi } from 'vitest'
import { Elicitations } from '../../../src/mcp/elicitations.js'
import { countLeftovers } from '../../support/leftovers.js'
import type { TaskLease } from '../../../src/parts.js'

const ofType = (field: object) => ({ type: 'object', properties: { field } })

it.each([
  ['text', ofType({ type: 'string', format: 'email' }), true],
  ['choices', ofType({ type: 'string', enum: ['a', 'b'] }), true],
  ['numbers', ofType({ type: 'number', minimum: 0 }), true],
  ['integers', ofType({ type: 'integer' }), true],
  ['booleans', ofType({ type: 'boolean' }), true],
  ['nothing but consent', { type: 'object', properties: {} }, true],
  ['no properties', { type: 'object' }, false],
  ['objects', ofType({ type: 'object', properties: {} }), false],
  ['lists', ofType({ type: 'array', items: { type: 'string' } }), false],
  ['several types', ofType({ type: ['string', 'null'] }), false],
  ['no type', ofType({ enum: ['a', 1] }), false],
])('F6: a question for %s', async (_what, schema, isForm) => {
  const manager = new AsyncTaskManager()
  manager.launch({ subagentName: 'asks', goalPrompt: 'g' }, async (_input, context) => {
    await context.ask({ message: 'What?', schema })
    return {}
  })
  await new Promise(setImmediate)
  const [task] = manager.getRunningTasks()
  const sent: unknown[] = []
  const context = {
    mcpReq: {
      signal: new AbortController().signal,
      send: (message: unknown) => Promise.reject(new Error(String(sent.push(message)))),
    },
  }
  const asking = new Elicitations(manager).askerOf(context as never).begin(() => undefined)
  expect(asking.ask(task!)).toBe(isForm)
  await new Promise(setImmediate)
  expect(sent).toHaveLength(isForm ? 1 : 0)
  asking.end()
})

interface Sent {
  readonly resolve: (answer: object) => void
  readonly reject: (error: Error) => void
}

async function asked() {
  const manager = new AsyncTaskManager()
  manager.launch({ subagentName: 'asks', goalPrompt: 'g' }, async (_input, context) => {
    await context.ask('Which branch?')
    return {}
  })
  await new Promise(setImmediate)
  const task = manager.getRunningTasks()[0]!
  const lease = vi.spyOn(manager, 'lease')
  const openLeases = () =>
    lease.mock.results.filter(({ value }) =>
      manager.registry.ledger.lease((value as TaskLease | undefined)?.deliveryId ?? ''),
    )
  const request = { taskIds: [], questions: [{ taskId: task.id, questionId: task.questions![0]!.id }] }
  const isOwed = (): boolean => {
    const taken = manager.lease(request)
    taken?.release()
    return taken !== undefined
  }
  expect(isOwed()).toBe(true)
  const sent: Sent[] = []
  const send = () => new Promise((resolve, reject) => sent.push({ resolve, reject }))
  const context = { mcpReq: { signal: new AbortController().signal, send } }
  const elicitations = new Elicitations(manager)
  const begin = (onGivenUp: (taskId: string) => void = () => undefined) =>
    elicitations.askerOf(context as never).begin(onGivenUp)
  const asking = begin()
  asking.ask(task)
  await new Promise(setImmediate)
  expect([sent.length, isOwed()]).toEqual([1, false])
  expect(openLeases()).toHaveLength(1)
  return { manager, task, isOwed, openLeases, begin, asking, sent, form: sent[0]! }
}

it('F6: no other message carries a question while it is asked; the next one may at once when its request has ended', async () => {
  const { manager, isOwed, asking, form } = await asked()
  asking.end()
  expect(isOwed()).toBe(true)
  form.reject(new Error('ended'))
  await new Promise(setImmediate)
  expect(isOwed()).toBe(true)
  await manager.dispose()
})

it('F6: a question whose form failed is owed again, while its request is still open', async () => {
  const { manager, isOwed, asking, form } = await asked()
  form.reject(new Error('no form'))
  await new Promise(setImmediate)
  expect(isOwed()).toBe(true)
  asking.end()
  await manager.dispose()
})

it('F6: a question that was answered by its form leaves no lease', async () => {
  const { manager, task, openLeases, asking, form } = await asked()
  form.resolve({ action: 'accept', content: { answer: 'main' } })
  await new Promise(setImmediate)
  expect(manager.getTask(task.id)?.status).toBe('completed')
  expect(openLeases()).toEqual([])
  asking.end()
  await manager.dispose()
})

it('F6: a question whose form failed is asked by another open request, once by each', async () => {
  const { manager, task, begin, asking, sent, form } = await asked()
  const givenUp: string[] = []
  const [second, third] = [begin((id) => givenUp.push(`second ${id}`)), begin((id) => givenUp.push(`third ${id}`))]
  expect([second.ask(task), third.ask(task)]).toEqual([true, true])
  await new Promise(setImmediate)
  expect(sent).toHaveLength(1)
  form.reject(new Error('no form'))
  await new Promise(setImmediate)
  expect([sent.length, asking.ask(task)]).toEqual([2, false])
  sent[1]!.reject(new Error('no form'))
  await new Promise(setImmediate)
  expect(sent).toHaveLength(3)
  third.end()
  second.end()
  asking.end()
  expect(new Set(givenUp)).toEqual(new Set([`second ${task.id}`]))
  await manager.dispose()
})

it('F6: a question is asked by another open request at once when its request ends, whatever becomes of its form', async () => {
  const { task, begin, asking, sent, form } = await asked()
  const second = begin()
  expect(second.ask(task)).toBe(true)
  asking.end()
  await new Promise(setImmediate)
  expect(sent).toHaveLength(2)
  form.reject(new Error('ended'))
  await new Promise(setImmediate)
  expect(sent).toHaveLength(2)
  sent[1]!.reject(new Error('ended'))
  second.end()
})

it('F6: a question that was answered before its form was sent has none, and what its task asks next has one', async () => {
  const manager = new AsyncTaskManager()
  const answers: unknown[] = []
  const { id } = manager.launch({ subagentName: 'asks', goalPrompt: 'g' }, async (_input, context) => {
    answers.push(await context.ask('Which branch?'))
    answers.push(await context.ask('And which tag?'))
    return {}
  })
  await new Promise(setImmediate)
  const messages: unknown[] = []
  const send = ({ params }: { params: { message: string } }) => {
    messages.push(params.message)
    return Promise.resolve({ action: 'accept', content: { answer: 'v1' } })
  }
  const context = { mcpReq: { signal: new AbortController().signal, send } }
  const asking = new Elicitations(manager).askerOf(context as never).begin(() => undefined)
  const follows = manager.questions$.subscribe(() => {
    const task = manager.getTask(id)
    if (task !== undefined) asking.ask(task)
  })
  asking.ask(manager.getTask(id)!)
  manager.answerTask(id, manager.getTask(id)!.questions![0]!.id, { action: 'accept', content: { answer: 'main' } })
  await new Promise(setImmediate)
  follows.unsubscribe()
  asking.end()
  expect(messages).toEqual([expect.stringContaining('And which tag?')])
  expect(answers).toHaveLength(2)
  expect(manager.getTask(id)?.status).toBe('completed')
})

/** What forms have left behind by now. */
const leftOfForms = (): string[] => Object.keys(countLeftovers()).filter((key) => key.includes('elicitations'))

interface SentForm {
  readonly message: { readonly params: Readonly<Record<string, unknown>> }
  readonly options: { readonly signal: AbortSignal; readonly timeout: number }
  readonly resolve: (answer: object) => void
  readonly reject: (error: Error) => void
}

/** Two tasks that ask two questions each, with the same ids, and forms that the test answers. */
async function askedTwice(meta?: Record<string, unknown>) {
  const manager = new AsyncTaskManager()
  for (const id of ['a', 'b']) {
    manager.launch({ id, subagentName: 'asks', goalPrompt: 'g' }, async (_input, context) => {
      await Promise.all([context.ask('Which branch?'), context.ask('Which tag?')])
      return {}
    })
  }
  await new Promise(setImmediate)
  const request = new AbortController()
  const sent: SentForm[] = []
  const send = (message: SentForm['message'], options: SentForm['options']) =>
    new Promise((resolve, reject) => {
      sent.push({ message, options, resolve, reject })
      options.signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
    })
  const elicitations = new Elicitations(manager)
  const begin = () =>
    elicitations.askerOf({ mcpReq: { signal: request.signal, send } } as never, { meta }).begin(() => undefined)
  const withdrawn = () => sent.map(({ options: { signal } }) => signal.aborted)
  return { manager, request, sent, begin, withdrawn, tick: () => new Promise(setImmediate) }
}

it('F6: forms of one request are withdrawn one by one, with their questions, and leave nothing', async () => {
  const { manager, request, sent, begin, withdrawn, tick } = await askedTwice({ of: 'a task' })
  const asking = begin()
  for (const task of manager.getRunningTasks()) asking.ask(task)
  await tick()
  expect(sent.map(({ message, options }) => [message.params['_meta'], options.timeout])).toEqual(
    Array.from({ length: 4 }, () => [{ of: 'a task' }, 2 ** 31 - 1]),
  )
  expect(withdrawn()).toEqual([false, false, false, false])
  manager.answerTask('a', 'question-1', { action: 'accept', content: { answer: 'main' } })
  await tick()
  expect(withdrawn()).toEqual([true, false, false, false])
  // The first of both is answered by its form; it leaves nothing while its request goes on.
  sent[1]!.resolve({ action: 'accept', content: { answer: 'v1' } })
  await tick()
  expect([manager.getTask('a')?.status, withdrawn().slice(2)]).toEqual(['completed', [false, false]])
  manager.cancelTask('b')
  await tick()
  expect(withdrawn().slice(2)).toEqual([true, true])
  expect(leftOfForms()).toEqual([])
  expect(request.signal.aborted).toBe(false)
  asking.end()
})

it.each(['the request', 'the asking'] as const)(
  'F6: forms are withdrawn when %s ends, and leave nothing',
  async (which) => {
    const { manager, request, sent, begin, withdrawn, tick } = await askedTwice()
    const asking = begin()
    asking.ask(manager.getTask('a')!)
    await tick()
    expect(sent.map(({ message }) => '_meta' in message.params)).toEqual([false, false])
    if (which === 'the request') request.abort()
    else asking.end()
    expect(withdrawn()).toEqual([true, true])
    await tick()
    expect(leftOfForms()).toEqual([])
    asking.end()
  },
)

it('F6: what one request asks goes on when another one ends', async () => {
  const { manager, sent, begin, withdrawn, tick } = await askedTwice()
  const [first, second] = [begin(), begin()]
  first.ask(manager.getTask('a')!)
  second.ask(manager.getTask('b')!)
  await tick()
  second.end()
  await tick()
  expect([first.ask(manager.getTask('a')!), sent.length]).toEqual([true, 4])
  await tick()
  // It asked nothing again.
  expect([sent.length, withdrawn()]).toEqual([4, [false, false, true, true]])
  first.end()
})
