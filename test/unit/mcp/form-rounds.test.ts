/** Questions of tasks, asked of the users of clients of 2026-07-28, whose calls are answered with `input_required` and made again. */
import { PassThrough } from 'node:stream'
import { createInterface } from 'node:readline'
import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { listenWith } from '../../../src/mcp/http.js'
import { startMcpStdioServer } from '../../../src/mcp/stdio.js'
import { ANONYMOUS, type Caller } from '../../../src/mcp/callers.js'
import type { SubagentRunner } from '../../../src/tools/subagents.js'
import { settle } from '../tools/tool-host.js'
import { until } from '../../support/lifelines.js'
import { ALICE, BOB, send, setUpApp, TASKS } from './wire.js'

type Answer = { action: 'accept' | 'decline' | 'cancel'; content?: Record<string, string> }

const FORMS = { elicitation: { form: {} } }
const GOAL = { goal_prompt: 'g' }

const words = ({ action, content }: { action: string; content?: Readonly<Record<string, unknown>> }): string =>
  `${action} ${String(content?.['answer'])}`

const asks: SubagentRunner = async (_request, context) => ({
  final_message: words(await context.ask('Which branch?')),
})

/** Asks as many questions as its goal says, one after the other. */
const asksOften: SubagentRunner = async ({ goal }, context) => {
  const answers: string[] = []
  for (let i = 1; i <= Number(goal); i += 1) answers.push(words(await context.ask(`Question ${i}?`)))
  return { final_message: answers.join(', ') }
}

/** Asks 13 questions at once. */
const asksAtOnce: SubagentRunner = async (_request, context) => {
  const answers = await Promise.all(Array.from({ length: 13 }, (_each, i) => context.ask(`Question ${i}?`)))
  return { final_message: answers.map(words).join(', ') }
}

const asksDeeply: SubagentRunner = async (_request, context) => {
  const schema = { type: 'object', properties: { places: { type: 'array', items: { type: 'string' } } } }
  return { final_message: JSON.stringify(await context.ask({ message: 'Where?', schema })) }
}

const hangs: SubagentRunner = (_request, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))

const main = (answer = 'main'): Answer => ({ action: 'accept', content: { answer } })

/** The client of the SDK, which collects the input and makes the call again by itself. */
async function connectClient(transport: Transport, answer: (message: string) => Answer | Promise<Answer>) {
  const client = new Client(
    { name: 'c', version: '1' },
    { capabilities: FORMS, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  )
  const asked: string[] = []
  client.setRequestHandler('elicitation/create', ({ params: { message } }) => {
    asked.push(message)
    return answer(message)
  })
  await client.connect(transport)
  onTestFinished(() => client.close())
  const call = async (name: string, args: Record<string, unknown> = {}, signal?: AbortSignal): Promise<string> => {
    const result = await client.callTool({ name, arguments: args }, { ...(signal && { signal }) })
    return (result.content as { text: string }[]).map(({ text }) => text).join('\n')
  }
  return { call, asked }
}

const asksAndHangs: SubagentRunner = async (request, context) => {
  await context.ask('Which branch?')
  context.report({ progress: 1, message: 'answered' })
  return hangs(request, context)
}

const SUBAGENTS = { asks, asksAtOnce, asksAndHangs, asksOften, asksDeeply, hangs }

/** @param token identifies the client; without one, it is anonymous */
async function overHttp(answer: (message: string) => Answer | Promise<Answer>, token: string | null = 'alice') {
  const host = setUpApp(SUBAGENTS)
  const server = await listenWith(host.app, { port: 0 })
  onTestFinished(() => server.close())
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
  const transport = new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers } })
  return { ...host, server, ...(await connectClient(transport, answer)) }
}

async function overStdio(answer: (message: string) => Answer) {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const subagents = Object.fromEntries(Object.entries(SUBAGENTS).map(([name, run]) => [name, { run }]))
  const server = startMcpStdioServer({ input, output, writeLog: () => undefined, subagents })
  onTestFinished(() => server.close())
  const transport: Transport = {
    start: () => {
      createInterface({ input: output }).on('line', (line) => transport.onmessage?.(JSON.parse(line) as never))
      return Promise.resolve()
    },
    send: (message) => Promise.resolve(void input.write(`${JSON.stringify(message)}\n`)),
    close: () => Promise.resolve(transport.onclose?.()),
  }
  const { manager } = await server.shown()
  return { manager, ...(await connectClient(transport, answer)) }
}

interface Asks {
  readonly resultType: string
  readonly inputRequests: Readonly<Record<string, { readonly params: { readonly message: string } }>>
  readonly requestState: string
}

/** A client that makes each round itself. */
function setUp() {
  const host = setUpApp(SUBAGENTS, { maxAsyncTasks: 100 })
  onTestFinished(() => host.app.close())
  const callAs = (caller: Caller, name: string, args: object, more: object = {}, capabilities: object = FORMS) =>
    send(host.app, caller, 'tools/call', { name, arguments: args, ...more }, capabilities)
  const begin = async (subagent_name = 'asks', goal_prompt = 'g'): Promise<Asks> => {
    const { result } = await callAs(ALICE, 'task', { subagent_name, goal_prompt })
    return result as unknown as Asks
  }
  const again = async (
    { inputRequests, requestState }: Asks,
    answer: object | undefined,
    { name = 'task', caller = ALICE, args = { subagent_name: 'asks', ...GOAL } }: Partial<Again> = {},
  ) => {
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer]))
    return callAs(caller, name, args, { requestState, ...(answer !== undefined && { inputResponses }) })
  }
  /** Launches a task whose question no answer has carried. */
  const launch = async (): Promise<string> => {
    const input = { subagentName: 'asks', goalPrompt: 'g', owner: ALICE.owner }
    const { id } = host.manager.launch(input, (_input, context) => asks({} as never, context))
    await settle()
    return id
  }
  return { ...host, callAs, begin, again, launch }
}

interface Again {
  readonly name: string
  readonly caller: Caller
  readonly args: object
}

const textIn = (reply: { readonly result: object }): string => JSON.stringify(reply.result)

describe('a question', () => {
  it.each([
    ['over HTTP', overHttp],
    ['over HTTP, without a token', (answer: () => Answer) => overHttp(answer, null)],
    ['over stdio', overStdio],
  ])('F6: is asked of the user of a client of 2026 that runs a task in place, %s', async (_how, connect) => {
    const { call, asked } = await connect(() => main())
    expect(await call('task', { subagent_name: 'asks', ...GOAL })).toContain('accept main')
    expect(asked).toEqual(['Which branch?'])
  })

  it('F6: and those that follow it are asked one by one, and the task runs once', async () => {
    const { call, asked, manager } = await overHttp((message) => main(message.slice(9, 10)))
    const text = await call('task', { subagent_name: 'asksOften', goal_prompt: '3' })
    expect(text).toContain('accept 1, accept 2, accept 3')
    expect(asked).toHaveLength(3)
    expect(manager.getAllTasks()).toHaveLength(1)
  })

  it('F6: is left to the model after as many rounds as the client makes', async () => {
    const { call, asked } = await overHttp(() => main())
    const text = await call('task', { subagent_name: 'asksOften', goal_prompt: '12' })
    expect(text).toContain('Answer with answer_async_task')
    expect(asked).toHaveLength(10)
  })

  it('F6: of each task that a call waits for is asked of the user, and by no answer meanwhile', async () => {
    const { callAs, again, launch, call } = setUp()
    const ids = [await launch(), await launch()]
    const waits = { name: 'wait_for_async_tasks', args: {} }
    const first = (await callAs(ALICE, waits.name, waits.args)).result as unknown as Asks
    expect(Object.keys(first.inputRequests)).toHaveLength(2)
    expect(textIn(await call('list_instances', {}, {}))).not.toContain('Which branch?')
    const text = textIn(await again(first, main('develop'), waits))
    for (const id of ids) expect(text).toContain(id)
    expect(text.match(/accept develop/g)?.length).toBeGreaterThanOrEqual(2)
  })

  it('F6: more of them than fit into one answer are asked in the next round', async () => {
    const { callAs, again, launch } = setUp()
    for (let i = 0; i < 12; i += 1) await launch()
    const waits = { name: 'wait_for_async_tasks', args: {} }
    const first = (await callAs(ALICE, waits.name, waits.args)).result as unknown as Asks
    expect(Object.keys(first.inputRequests)).toHaveLength(10)
    const second = (await again(first, main(), waits)).result as unknown as Asks
    expect(Object.keys(second.inputRequests)).toHaveLength(2)
    expect(textIn(await again(second, main(), waits))).toContain('12 of 12 async task(s) ended')
  })

  it.each([
    ['cancels it', { action: 'cancel' }, 60_000, false],
    ['declines it at once', { action: 'decline' }, 499, true],
    ['answers it as it should not', { action: 'accept', content: { no: 'answer' } }, 60_000, false],
    ['does not answer it', undefined, 0, false],
  ])('F6: is left to the model when the client of 2026 %s', async (_what, answer, afterMs, isNoted) => {
    const { begin, again, clock, call, manager } = setUp()
    const first = await begin()
    clock.advance(afterMs)
    const text = textIn(await again(first, answer))
    expect(text).toContain('Answer with answer_async_task')
    expect(text.includes('at once, so no person has seen it')).toBe(isNoted)
    const [task] = manager.getRunningTasks()
    expect(task!.questions).toHaveLength(1)
    await call('answer_async_task', { task_id: task!.id, answer: 'develop' }, {})
    await until(() => manager.getTask(task!.id)?.status === 'completed')
  })

  it('F6: is declined by a person of a client of 2026 who has read it', async () => {
    const { begin, again, clock } = setUp()
    const first = await begin()
    clock.advance(500)
    expect(textIn(await again(first, { action: 'decline' }))).toContain('decline')
  })

  it('F6: that failed once is not asked again by the rounds of the same call, and the others are', async () => {
    const { begin, again } = setUp()
    const options = { args: { subagent_name: 'asksAtOnce', ...GOAL } }
    const messagesOf = (round: Asks): string[] => Object.values(round.inputRequests).map(({ params }) => params.message)
    const first = await begin('asksAtOnce')
    expect(messagesOf(first)).toEqual(['Question 0?'])
    const second = (await again(first, { action: 'cancel' }, options)).result as unknown as Asks
    expect(messagesOf(second)).toHaveLength(10)
    const third = (await again(second, main(), options)).result as unknown as Asks
    expect(messagesOf(third)).toEqual(['Question 11?', 'Question 12?'])
    const text = textIn(await again(third, main(), options))
    expect(text).toContain('Question 0?')
    expect(text).toContain('Answer with answer_async_task')
  })

  it('F6: that a form cannot show, and one of a client without forms, are left to the model', async () => {
    const { begin, callAs } = setUp()
    expect(JSON.stringify(await begin('asksDeeply'))).toContain(
      'it waits for an answer, and continues in the background',
    )
    const { result } = await callAs(ALICE, 'task', { subagent_name: 'asks', ...GOAL }, {}, {})
    expect(JSON.stringify(result)).toContain('it waits for an answer, and continues in the background')
  })

  it('F6: is asked by one of two calls that wait, and by the other one when the first gives it up', async () => {
    const { callAs, again, launch } = setUp()
    await launch()
    const waits = { name: 'wait_for_async_tasks', args: {} }
    const first = (await callAs(ALICE, waits.name, waits.args)).result as unknown as Asks
    const other = callAs(ALICE, waits.name, waits.args)
    await settle()
    await again(first, { action: 'cancel' }, waits)
    expect(((await other).result as unknown as Asks).resultType).toBe('input_required')
  })

  it('F6: is asked by one of two calls that begin to wait at once', async () => {
    const { callAs, launch, clock } = setUp()
    await launch()
    const both = [callAs(ALICE, 'wait_for_async_tasks', {}), callAs(ALICE, 'wait_for_async_tasks', {})]
    const first = await Promise.race(both)
    expect((first.result as unknown as Asks).resultType).toBe('input_required')
    await settle()
    clock.advance(45_000)
    const results = (await Promise.all(both)).map(({ result }) => result['resultType'])
    expect(results.filter((type) => type === 'input_required')).toHaveLength(1)
  })

  it('F6: of a client of 2026 that never makes the next round is carried by an answer after five minutes', async () => {
    const { begin, call, clock, manager } = setUp()
    await begin()
    clock.advance(299_999)
    expect(textIn(await call('list_instances', {}, {}))).not.toContain('Which branch?')
    clock.advance(1)
    expect(textIn(await call('list_instances', {}, {}))).toContain('Which branch?')
    expect(manager.getRunningTasks()[0]!.questions).toHaveLength(1)
    expect(clock.pending).toBeLessThanOrEqual(1)
  })

  it('F6: is answered by a person who took longer than that', async () => {
    const { begin, again, clock } = setUp()
    const first = await begin()
    clock.advance(600_000)
    expect(textIn(await again(first, main()))).toContain('accept main')
  })
})

describe('the next round of a call', () => {
  it.each([
    ['another client', { caller: BOB }],
    ['a client without a token', { caller: ANONYMOUS }],
    ['another tool', { name: 'wait_for_async_tasks', args: {} }],
  ])('F6: of %s is refused, and answers nothing', async (_who, changed) => {
    const { begin, again, manager } = setUp()
    const first = await begin()
    const { error, result } = await again(first, main(), changed)
    expect([error?.code, result]).toEqual([-32602, undefined])
    expect(manager.getAllTasks()).toMatchObject([{ status: 'running', questions: [{ id: 'question-1' }] }])
  })

  it.each([
    ['of an earlier server', (_state: string, ofOther: string) => ofOther],
    ['that was changed', (state: string) => `${state.slice(0, -4)}AAAA`],
    ['that is none', () => 'state'],
  ])('F6: with a state %s launches and answers nothing, and says so', async (_which, change) => {
    const [here, other] = [setUp(), setUp()]
    const first = await here.begin()
    const requestState = change(first.requestState, (await other.begin()).requestState)
    const reply = await here.again({ ...first, requestState }, main())
    expect(reply.result).toMatchObject({ isError: true })
    expect(textIn(reply)).toContain('Nothing was launched, and no question was answered')
    expect(here.manager.getAllTasks()).toMatchObject([{ status: 'running' }])
  })

  it('F6: launches nothing for a client that follows tasks, either', async () => {
    const { begin, callAs, manager } = setUp()
    const { inputRequests, requestState } = await begin()
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, main()]))
    const args = { subagent_name: 'asks', ...GOAL }
    const reply = await callAs(ALICE, 'task', args, { requestState, inputResponses }, { ...FORMS, ...TASKS })
    expect(textIn(reply)).toContain('accept main')
    expect(manager.getAllTasks()).toHaveLength(1)
  })

  it('F6: that is made twice delivers the result once', async () => {
    const { begin, again } = setUp()
    const first = await begin()
    expect(textIn(await again(first, main()))).toContain('accept main')
    const text = textIn(await again(first, main('other')))
    expect(text).toContain('has ended, and its result was delivered')
    expect(text).not.toContain('accept')
  })

  it('F6: cancels the task when its client cancels it, as the first round does', async () => {
    const { call, manager } = await overStdio(() => main())
    const givenUp = new AbortController()
    const result = call('task', { subagent_name: 'asksAndHangs', ...GOAL }, givenUp.signal)
    result.catch(() => undefined)
    await until(() => manager.getRunningTasks()[0]?.progress?.message === 'answered')
    givenUp.abort()
    await until(() => manager.getAllTasks()[0]?.status === 'cancelled')
  })

  it('F6: leaves the task in the background when its time is up', async () => {
    const { begin, again, clock, manager } = setUp()
    const first = await begin('asksAndHangs')
    expect(manager.getRunningTasks()[0]!.isForeground).not.toBe(true)
    const second = again(first, main(), {
      args: { ...GOAL, subagent_name: 'asksAndHangs', background_after_seconds: 5 },
    })
    await until(() => manager.getRunningTasks()[0]?.progress?.message === 'answered')
    await settle()
    clock.advance(4999)
    expect(await Promise.race([second, settle().then(() => 'waits')])).toBe('waits')
    clock.advance(1)
    expect(textIn(await second)).toContain('has not ended within 5 s: it continues in the background')
  })
})

it('F6: a server that closes leaves no form behind', async () => {
  const { begin, app, clock } = setUp()
  await begin()
  await app.close()
  expect(clock.pending).toBe(0)
})
