/** Launch on the page: the subagents of a host, and each way in which a launch is refused. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  AsyncTaskManager,
  createAgentTasks,
  type AgentTasks,
  type AgentTasksOptions,
  type SubagentRequest,
} from 'agent-tasks'
import type { PageSubagents } from '../../../src/page/wire.js'
import { subagentOffer } from '../../../src/tools/offered-subagents.js'
import { breakableStore } from '../../support/breakable-store.js'
import { startPage } from './test-page.js'
import { TaskLimitError } from '../../../src/errors.js'

const region = z.object({ region: z.enum(['eu', 'us']).describe('Where it goes.'), copies: z.number().default(2) })

/** A host with a subagent that has a schema, one that has none, and one that does not end. */
async function withHost(options: Partial<AgentTasksOptions> = {}) {
  const requests: SubagentRequest[] = []
  const note = (request: SubagentRequest) => {
    requests.push(request)
    return { final_message: 'done' }
  }
  const tasks = createAgentTasks({
    owner: 'agent',
    subagents: {
      deployer: { description: 'Deploys.', contextSchema: region, run: note },
      helper: note,
      sleeper: (_request: SubagentRequest, { signal }) =>
        new Promise<string>((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
    },
    ...options,
  })
  onTestFinished(() => tasks.dispose())
  const page = await startPage({ tasks })
  const launch = (name: string, body: unknown) => page.post(`subagents/${encodeURIComponent(name)}/launch`, body)
  return { tasks, manager: tasks.manager, requests, launch, ...page }
}

const idOf = (key: unknown): string => String(key).replace('async:', '')

describe('the subagents of a host', () => {
  it('are listed with their descriptions and the schemas of what they take', async () => {
    const { get, read } = await withHost()
    const { owner, subagents, optionsSchema } = (await get('subagents')).body as unknown as PageSubagents
    expect(owner).toBe('agent')
    expect(subagents.map(({ name, description }) => [name, description])).toEqual([
      ['deployer', 'Deploys.'],
      ['helper', undefined],
      ['sleeper', undefined],
    ])
    expect(subagents[0]?.contextSchema).toMatchObject({
      type: 'object',
      properties: { region: { enum: ['eu', 'us'], description: 'Where it goes.' }, copies: { default: 2 } },
      required: ['region'],
    })
    expect(subagents[1]).not.toHaveProperty('contextSchema')
    expect(Object.keys(Object(optionsSchema['properties']) as object)).toContain('timeout_seconds')
    const reader = await read()
    await reader.until(({ events }) => events.length > 0)
    expect(reader.events[0]).toMatchObject({ type: 'hello', data: { canLaunch: true } })
  })

  it('are at most 500, and have their schemas as far as there is room for them', async () => {
    const large = { contextSchema: z.object({ note: z.string().describe('x'.repeat(700_000)) }), run: () => 'done' }
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`helper${at}`, () => 'done']))
    const small = { contextSchema: region, run: () => 'done' }
    const { get } = await withHost({ subagents: { one: large, other: large, small, ...many } })
    const { subagents } = (await get('subagents')).body as unknown as PageSubagents
    expect(subagents).toHaveLength(500)
    expect(subagents.slice(0, 4).map((one) => [one.name, 'contextSchema' in one])).toEqual([
      ['one', true],
      ['other', false],
      ['small', true],
      ['helper0', false],
    ])
  })

  it('are none for a manager without a host, and for a host without subagents', async () => {
    for (const tasks of [new AsyncTaskManager(), createAgentTasks()]) {
      const { get, post, read } = await startPage({ tasks })
      expect((await get('subagents')).body).toMatchObject({ subagents: [] })
      expect(await post('subagents/helper/launch', { goal: 'x' })).toMatchObject({
        status: 409,
        body: { code: 'NO_SUBAGENTS' },
      })
      const reader = await read()
      await reader.until(({ events }) => events.length > 0)
      expect(reader.events[0]).toMatchObject({ data: { canLaunch: false } })
      await tasks.dispose()
    }
  })

  it('need the token, and take no parameters', async () => {
    const { base, get } = await withHost()
    expect((await fetch(`${base}/api/subagents`)).status).toBe(401)
    expect((await get('subagents?x=1')).status).toBe(400)
    expect((await get('subagents/helper')).status).toBe(404)
  })
})

describe('a launch', () => {
  it('starts a task of the subagent for the owner of the host, with what the schema makes of its context', async () => {
    const { manager, launch, requests } = await withHost()
    const { status, body } = await launch('deployer', { goal: 'deploy', context: { region: 'eu' } })
    expect(status).toBe(200)
    const id = idOf(body['key'])
    await expect.poll(() => manager.getTask(id)?.status).toBe('completed')
    expect(manager.getTask(id)).toMatchObject({ subagentName: 'deployer', goalPrompt: 'deploy', owner: 'agent' })
    expect(manager.getTask(id)).not.toHaveProperty('timeoutMs')
    expect(requests).toMatchObject([{ goal: 'deploy', context: { region: 'eu', copies: 2 } }])
  })

  it('checks a context once, also when the task is run again', async () => {
    const requests: SubagentRequest[] = []
    const sized = {
      contextSchema: z.object({ width: z.number().transform((width) => `${width} cm`) }),
      run: (request: SubagentRequest) => {
        requests.push(request)
        return 'done'
      },
    }
    const { tasks, launch, post } = await withHost({ subagents: { sized } })
    const { status, body } = await launch('sized', { goal: 'x', context: { width: 2 } })
    expect(status).toBe(200)
    await expect.poll(() => requests).toHaveLength(1)
    const { id, result } = (tasks as AgentTasks).launch('sized', 'y', { context: { width: 2 } })
    await result
    for (const key of [String(body['key']), `async:${id}`]) {
      expect((await post(`history/${encodeURIComponent(key)}/run-again`)).status).toBe(200)
    }
    await expect.poll(() => requests.map(({ context }) => context)).toEqual(Array(4).fill({ width: '2 cm' }))
  })

  it('passes on its options, and has the owner that was chosen', async () => {
    const { manager, launch, requests } = await withHost()
    const options = {
      behaviour_prompts: ['be brief'],
      tool_whitelist: ['read'],
      expected_outputs: { sum: 'the sum' },
      timeout_seconds: 60,
      concurrency_key: 'one',
    }
    const { body } = await launch('helper', { goal: 'x', owner: 'someone', context: { any: [1] }, options })
    await expect
      .poll(() => requests)
      .toMatchObject([
        {
          behaviourPrompts: ['be brief'],
          toolWhitelist: ['read'],
          expectedOutputs: { sum: 'the sum' },
          context: { any: [1] },
        },
      ])
    expect(manager.getTask(idOf(body['key']))).toMatchObject({
      owner: 'someone',
      timeoutMs: 60_000,
      concurrencyKey: 'one',
    })
  })

  it.each([
    ['none', { goal: 'x' }, 'subagent', 'one of deployer, helper, sleeper'],
    ['constructor', { goal: 'x' }, 'subagent', 'one of deployer'],
    ['helper', {}, 'goal', 'a string'],
    ['helper', { goal: '  ' }, 'goal', 'a goal, in words'],
    ['helper', { goal: 'x', params: {} }, 'params', 'a known field'],
    ['helper', { goal: 'x', owner: '' }, 'owner', 'at least 1 character'],
    ['helper', { goal: 'x', owner: 'x'.repeat(521) }, 'owner', 'at most 520'],
    ['helper', { goal: 'x', context: [] }, 'context', 'an object'],
    ['helper', { goal: 'x', context: JSON.parse('{"__proto__":1}') as object }, 'context.__proto__', 'would be lost'],
    ['helper', { goal: 'x', options: { timeout_seconds: 0 } }, 'options.timeout_seconds', 'a number of seconds'],
    ['helper', { goal: 'x', options: { tool_whitelist: 'read' } }, 'options.tool_whitelist', 'an array'],
    ['deployer', { goal: 'x' }, 'context.region', '"eu", "us"'],
    ['deployer', { goal: 'x', context: { region: 'moon' } }, 'context.region', '"eu", "us"'],
  ])('of %s with %.60j is refused, names the field, and changes nothing', async (name, body, field, expected) => {
    const { manager, launch } = await withHost()
    expect(await launch(name, body)).toMatchObject({
      status: 400,
      body: { code: 'INVALID_INPUT', field, error: expect.stringContaining(expected) as string },
    })
    expect(manager.getAllTasks()).toEqual([])
  })

  it('is refused at the limit, and waits where the host lets launches wait', async () => {
    const { launch } = await withHost({ maxAsyncTasks: 1 })
    expect((await launch('sleeper', { goal: 'x' })).status).toBe(200)
    expect(await launch('sleeper', { goal: 'x' })).toMatchObject({
      status: 409,
      body: { code: 'TASK_LIMIT', error: 'Max async tasks (1) reached' },
    })
    const queueing = await withHost({ maxAsyncTasks: 1, whenFull: 'queue' })
    await queueing.launch('sleeper', { goal: 'x' })
    const { body } = await queueing.launch('sleeper', { goal: 'x' })
    expect(queueing.manager.getTask(idOf(body['key']))?.status).toBe('queued')
  })

  it('is refused when the host allows its owner no further task', async () => {
    const { manager, launch } = await withHost()
    const offered = manager.reads.use(subagentOffer)
    const { offer } = offered
    if (offer === undefined) expect.unreachable()
    offered.offer = {
      ...offer,
      launching: (owner, start) => {
        if (owner === 'full') throw new TaskLimitError(7)
        return start()
      },
    }
    expect(await launch('helper', { goal: 'x', owner: 'full' })).toMatchObject({
      status: 409,
      body: { code: 'TASK_LIMIT', error: 'Max async tasks (7) reached' },
    })
    expect(manager.getAllTasks()).toEqual([])
    expect((await launch('helper', { goal: 'x', owner: 'other' })).status).toBe(200)
  })

  it('is refused when the host was disposed', async () => {
    const { tasks, launch } = await withHost()
    await tasks.dispose()
    expect(await launch('helper', { goal: 'x' })).toMatchObject({
      status: 409,
      body: { code: 'DISPOSED', error: expect.stringContaining('was disposed') as string },
    })
  })

  it('is refused when the store cannot take it', async () => {
    const { store, state } = breakableStore()
    const { launch, manager, requests } = await withHost({ store, onError: () => undefined })
    await manager.recovered
    state.isBroken = true
    expect(await launch('helper', { goal: 'x' })).toMatchObject({ status: 409, body: { code: 'STORE_FULL' } })
    state.isBroken = false
    expect(requests).toEqual([])
  })
})
