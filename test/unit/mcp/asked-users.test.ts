/** Questions of tasks, asked of the users of clients that do not follow tasks, while their calls wait. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema, type ElicitResult } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, it, onTestFinished } from 'vitest'
import { listenWith } from '../../../src/mcp/http.js'
import type { SubagentRunner } from '../../../src/tools/subagents.js'
import { until } from '../../support/lifelines.js'
import { setUpApp } from './wire.js'

interface Asked {
  readonly message: string
  readonly signal: AbortSignal
  answer(result: ElicitResult): void
  fail(): void
}

const MAIN: ElicitResult = { action: 'accept', content: { answer: 'main' } }

const asks: SubagentRunner = async (_request, context) => {
  const { action, content } = await context.ask('Which branch?')
  return { final_message: `${action} ${String(content?.['answer'])}` }
}

const hangs: SubagentRunner = (_request, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))

const asksDeeply: SubagentRunner = async (_request, context) => {
  const schema = { type: 'object', properties: { places: { type: 'array', items: { type: 'string' } } } }
  return { final_message: JSON.stringify(await context.ask({ message: 'Where?', schema })) }
}

async function setUp({ elicits = true } = {}) {
  const host = setUpApp({ asks, asksDeeply, hangs })
  const server = await listenWith(host.app, { port: 0 })
  onTestFinished(() => server.close())
  const client = new Client({ name: 'c', version: '1' }, { capabilities: elicits ? { elicitation: {} } : {} })
  const asked: Asked[] = []
  if (elicits) {
    client.setRequestHandler(
      ElicitRequestSchema,
      ({ params: { message } }, { signal }) =>
        new Promise((answer, reject) => {
          asked.push({ message, signal, answer, fail: () => reject(new Error('no form')) })
        }),
    )
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url)))
  onTestFinished(() => client.close())
  const call = async (name: string, args: object = {}, signal?: AbortSignal): Promise<string> => {
    const result = await client.callTool({ name, arguments: args as never }, undefined, { ...(signal && { signal }) })
    return (result.content as { text: string }[]).map(({ text }) => text).join('\n')
  }
  const run = (subagent_name: string, isAsync = false) =>
    call('task', { subagent_name, goal_prompt: 'g', async: isAsync })
  const launch = async (subagent: string): Promise<string> => {
    await run(subagent, true)
    await until(() => host.manager.getRunningTasks().some(({ questions }) => questions !== undefined))
    return host.manager.getRunningTasks()[0]!.id
  }
  const isAsked = (count = 1) => until(() => asked.length === count)
  /** SDK 1.x does not see that the first request of a server, whose id is 0, is cancelled. */
  const answerFirst = async (): Promise<void> => {
    const result = run('asks')
    await isAsked()
    asked.pop()!.answer(MAIN)
    await result
  }
  return { ...host, call, run, launch, asked, isAsked, answerFirst }
}

describe('a question', () => {
  it('F6: is asked of the user while a call runs its task in place, which then returns its result', async () => {
    const { run, asked, isAsked } = await setUp()
    const result = run('asks')
    await isAsked()
    expect(asked[0]!.message).toBe('Which branch?')
    asked[0]!.answer(MAIN)
    expect(await result).toContain('accept main')
  })

  it('F6: is asked of the user while a call waits, and by no answer meanwhile', async () => {
    const { call, launch, asked, isAsked, clock } = await setUp()
    const told = await launch('asks')
    const result = call('wait_for_async_tasks', { task_ids: [told] })
    await isAsked()
    expect(await call('list_instances')).not.toContain('waits for an answer')
    clock.advance(500)
    asked[0]!.answer({ action: 'decline' })
    expect(await result).toContain('decline')
    expect(asked).toHaveLength(1)
  })

  it('F6: is withdrawn when it was answered elsewhere', async () => {
    const { call, run, launch, asked, isAsked, answerFirst, manager } = await setUp()
    await answerFirst()
    const id = await launch('asks')
    await run('hangs', true)
    const result = call('wait_for_async_tasks')
    await isAsked()
    await call('answer_async_task', { task_id: id, answer: 'develop' })
    await until(() => asked[0]!.signal.aborted)
    manager.cancelTask(manager.getRunningTasks()[0]!.id)
    expect(await result).toContain('accept develop')
  })

  it('F6: is withdrawn when the wait ends, and left to the model', async () => {
    const { call, launch, asked, isAsked, answerFirst, clock } = await setUp()
    await answerFirst()
    await launch('asks')
    const result = call('wait_for_async_tasks', { timeout_seconds: 5 })
    await isAsked()
    clock.advance(5000)
    const text = await result
    expect(text).toContain('1 of them wait(s) for an answer')
    expect(text.match(/Which branch\?/g)).toHaveLength(1)
    expect(await call('list_instances')).not.toContain('Which branch?')
    await until(() => asked[0]!.signal.aborted)
  })

  it('F6: is asked by another call that waits, when the one that asked it has been cancelled', async () => {
    const { call, launch, asked, isAsked } = await setUp()
    await launch('asks')
    const givenUp = new AbortController()
    const first = call('wait_for_async_tasks', {}, givenUp.signal)
    first.catch(() => undefined)
    await isAsked()
    const second = call('wait_for_async_tasks')
    await call('check_async_tasks')
    expect(asked).toHaveLength(1)
    givenUp.abort()
    await isAsked(2)
    asked[1]!.answer(MAIN)
    expect(await second).toContain('accept main')
  })

  it.each([
    ['fails to show it', (form: Asked) => form.fail()],
    ['answers it as it should not', (form: Asked) => form.answer({ action: 'accept', content: { no: 'answer' } })],
  ])('F6: is left to the model when the client %s', async (_what, respond) => {
    const { run, asked, isAsked } = await setUp()
    const result = run('asks')
    await isAsked()
    respond(asked[0]!)
    const text = await result
    expect(text).toContain('it waits for an answer, and continues in the background')
    expect(text).toContain('Answer with answer_async_task')
    expect(asked).toHaveLength(1)
  })

  it.each([
    ['claude -p, which cancels each form', 'cancel', 0, false],
    ['a person who closes the form', 'cancel', 60_000, false],
    ['codex exec, which declines each form at once', 'decline', 499, true],
  ] as const)('F6: is left to the model by %s', async (_client, action, afterMs, isNoted) => {
    const { call, run, asked, isAsked, clock, manager } = await setUp()
    const result = run('asks')
    await isAsked()
    clock.advance(afterMs)
    asked[0]!.answer({ action })
    const text = await result
    expect(text).toContain('Answer with answer_async_task')
    expect(text.includes('at once, so no person has seen it')).toBe(isNoted)
    const [task] = manager.getRunningTasks()
    expect(task!.questions).toHaveLength(1)
    await call('answer_async_task', { task_id: task!.id, answer: 'develop' })
    await until(() => manager.getTask(task!.id)?.status === 'completed')
    expect(asked).toHaveLength(1)
  })

  it.each([
    ['its client has no forms', 'asks', { elicits: false }],
    ['a form cannot show its schema', 'asksDeeply', { elicits: true }],
  ])('F6: is left to the model where %s', async (_why, subagent, options) => {
    const { run, asked } = await setUp(options)
    expect(await run(subagent)).toContain('it waits for an answer, and continues in the background')
    expect(asked).toEqual([])
  })
})
