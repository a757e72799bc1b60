/** The tools that texts for a client name: the client has them, and they take the parameters that the texts show. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { AgentConfigInput } from '../../../src/protocol/agent-config.js'
import { until } from '../../support/lifelines.js'
import { overStdio, textOf, type Called } from './clients.js'

interface Listed {
  readonly name: string
  readonly description: string
  readonly inputSchema: Parameters<typeof z.fromJSONSchema>[0]
}

const LAUNCH = { subagent_name: 'slow', goal_prompt: 'g', async: true }

/** Words that look like the names of tools: parameters, and fields of results and errors. */
const OTHER_WORDS = new Set(
  'task_id task_ids agent_id emitted_vars final_message timeout_seconds background_after_seconds subagent_name goal_prompt question_id behaviour_prompts tool_whitelist expected_outputs on_failed_dependency concurrency_key'.split(
    ' ',
  ),
)

/** A client that keeps all that the server says to its model. */
async function reading(config: AgentConfigInput = {}) {
  const host = overStdio({ maxAsyncTasks: 2, maxMessageChars: 2100, ...config })
  const { instructions } = (await host.initialize()) as unknown as { instructions: string }
  const texts = [instructions]
  let id = 0
  const call = async (name: string, args: object = {}): Promise<Called> => {
    const answer = await host.ask((id += 1), 'tools/call', { name, arguments: args })
    // Details are JSON, whose notes have calls.
    texts.push(textOf(answer).replaceAll('\\"', '"'))
    return answer
  }
  const { tools } = (await host.ask((id += 1), 'tools/list', {})) as unknown as { tools: Listed[] }
  texts.push(...tools.map(({ description }) => description))
  const prompt = await host.ask((id += 1), 'prompts/get', { name: 'background-tasks' })
  texts.push((prompt as unknown as { messages: { content: { text: string } }[] }).messages[0]!.content.text)
  return { ...host, call, texts, tools }
}

/** The calls that a text shows, such as `tool {"task_id":"x"}`. */
function callsIn(text: string): (readonly [name: string, args: unknown])[] {
  const found = text.matchAll(/\b([a-z]+(?:_[a-z]+)+) (\{[^{}]*\})/g)
  return Array.from(found, ([, name = '', args = '']) => [name, JSON.parse(args)] as const)
}

const wordsIn = (text: string): string[] => text.match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? []

const namesAfter = (texts: readonly string[], notice: RegExp): Set<string | undefined> =>
  new Set(texts.flatMap((text) => Array.from(text.matchAll(notice), ([, name]) => name)))

/** Makes every call whose text names a tool. */
async function readEverything({
  call,
  clock,
  contexts,
  end,
  tools,
}: Awaited<ReturnType<typeof reading>>): Promise<void> {
  const long = String((await call('task', LAUNCH)).structuredContent!['task_id'])
  contexts.get(long)!.append('x'.repeat(100))
  await call('task', LAUNCH)
  await call('task', LAUNCH)
  void contexts.get(long)!.ask('Which branch?')
  for (const args of [{}, { task_id: long }, { cursor: 0, task_id: long, max_bytes: 10 }]) {
    await call('check_async_tasks', args)
  }
  for (const args of [{}, { max_bytes: 10 }]) await call('read_task_output', { task_id: long, ...args })
  await call('wait_for_async_tasks', { timeout_seconds: 0 })
  await call('answer_async_task', { task_id: long, answer: 'main' })
  const short = call('wait_for_async_tasks', { timeout_seconds: 1 })
  await until(() => (clock.nextDue ?? Infinity) <= clock.now() + 1000)
  clock.advance(1000)
  await short
  for (const { name } of tools) for (const task_id of ['', 'nobody', 7]) await call(name, { task_id })
  const waiting = call('wait_for_async_tasks', { task_ids: [long] })
  end(long, 'y'.repeat(50_000))
  await waiting
  await call('check_async_tasks', { task_id: long })
  await call('read_task_output', { task_id: long, part: 'result', max_bytes: 100 })
  const inPlace = call('task', { ...LAUNCH, async: false })
  await until(() => contexts.size === 3)
  end([...contexts.keys()][2]!, 'z'.repeat(50_000))
  await inPlace
  const owed = [...contexts.keys()][1]!
  end(owed, 'o'.repeat(50_000))
  await call('check_async_tasks')
}

describe('the texts for a client', () => {
  it('F12: name tools that it has, with parameters that they list', async () => {
    const client = await reading()
    await readEverything(client)
    const { texts, tools } = client
    const schemas = new Map(tools.map(({ name, inputSchema }) => [name, z.fromJSONSchema(inputSchema)]))
    const named = new Set(texts.flatMap(wordsIn).filter((word) => !OTHER_WORDS.has(word)))
    expect([...named].filter((name) => !schemas.has(name))).toEqual([])
    const calls = texts.flatMap(callsIn)
    expect(calls.filter(([name, args]) => schemas.get(name)?.safeParse(args).success !== true)).toEqual([])
    expect(new Set(calls.map(([name]) => name))).toEqual(
      new Set(['answer_async_task', 'read_task_output', 'check_async_tasks']),
    )
  })

  it('F12: name the tool that reads what was cut, and the tool that was called', async () => {
    const client = await reading()
    await readEverything(client)
    const { texts } = client
    expect(namesAfter(texts, /\[Cut to a preview[^\]]*with (\w+) /g)).toEqual(new Set(['read_task_output']))
    expect(texts.filter((text) => text.includes('[Cut to a preview')).length).toBeGreaterThanOrEqual(3)
    expect(
      namesAfter(
        texts.filter((text) => text.startsWith('Output of')),
        / with (\w+) /g,
      ),
    ).toEqual(new Set(['read_task_output']))
    const asTask = { name: 'task', arguments: LAUNCH, task: {} }
    const created = await client.ask(1000, 'tools/call', asTask)
    const { taskId } = (created as unknown as { task: { taskId: string } }).task
    client.end(taskId, 'r'.repeat(50_000))
    expect(textOf(await client.ask(1001, 'tasks/result', { taskId }))).toContain(
      'Read the rest with read_task_output {',
    )
    for (const name of ['cancel_async_task', 'read_task_output', 'answer_async_task']) {
      expect(textOf(await client.call(name, { task_id: '' }))).toContain(`Invalid parameters for ${name}: `)
    }
  })
})
