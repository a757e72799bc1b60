/** Results that tool calls return in a turn are delivered when the turn was accepted, and owed again when it has failed. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import type { TurnDelivery } from '../../../src/features/delivery/auto-trigger.js'
import { createAgentTasks, type AgentTasksOptions } from '../../../src/index.js'
import { memoryStore, type Store } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { defineTool, type ToolResult } from '../../../src/tools/tool.js'
import { deferred } from '../tools/tool-host.js'
import { createTurns } from '../../../src/parts.js'

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const OVERLOADED = new Error('the provider is overloaded')

type Body = (turn: { readonly text: string; readonly delivery: TurnDelivery | undefined }) => unknown

/** A host with turns. `bodies` are what the agent does in its turns; in later turns it accepts what it reads. */
function setUp(bodies: Body[], options: AgentTasksOptions = {}) {
  const clock = createManualClock()
  const sent: (TurnDelivery & { readonly text: string })[] = []
  const turns = createTurns(async (text, _signal, delivery) => {
    if (delivery !== undefined) sent.push({ ...delivery, text })
    return bodies.shift()?.({ text, delivery })
  })
  const tasks = createAgentTasks({
    clock,
    graceMs: 0,
    onError: vi.fn(),
    subagents: { echo: ({ goal }) => `echo ${goal}` },
    isAgentBusy: turns.isBusy$,
    triggerAgentTurn: turns.triggerAgentTurn,
    ...options,
  })
  onTestFinished(async () => {
    await turns.dispose()
    await tasks.dispose()
    expect(clock.pending).toBe(0)
  })
  const { manager, tools } = tasks
  const end = (...ids: string[]): void => {
    for (const id of ids) {
      manager.registerTask({ id, subagentName: 'agent', goalPrompt: 'look' })
      manager.completeTask(id, { final_message: `result of ${id}` })
    }
  }
  const pass = async (ms = 0): Promise<void> => {
    await tick()
    clock.advance(ms)
    await tick()
  }
  return { clock, tasks, turns, manager, tools, sent, end, pass, of: (id: string) => manager.getTask(id)?.delivery }
}

type Host = ReturnType<typeof setUp>

/** The ways in which a tool call takes the result of task `a`. */
const ways: Readonly<Record<string, (host: Host) => Promise<ToolResult>>> = {
  wait_for_async_tasks: ({ tools }) => tools.wait_for_async_tasks.execute({ task_ids: ['a'] }),
  'a result that is added to another tool': async (host) => {
    host.clock.advance(60_000)
    return host.tools.check_async_tasks.execute({})
  },
}

describe.each([
  ['without a store', (): Store | undefined => undefined],
  ['with a store', (): Store | undefined => memoryStore()],
])('%s', (_name, createStore) => {
  const withStore = (): AgentTasksOptions => {
    const store = createStore()
    return store === undefined ? {} : { store }
  }

  describe.each(Object.entries(ways))('%s', (_way, call) => {
    it('H6: is delivered when its turn was accepted, and until then no message carries it', async () => {
      const results: ToolResult[] = []
      const rest = deferred<undefined>()
      const host: Host = setUp(
        [
          async () => {
            host.end('a')
            await tick()
            results.push(await call(host))
            await rest.promise
          },
        ],
        withStore(),
      )
      const turn = host.turns.take('go')
      await host.pass()
      await host.pass(1000)
      expect(results[0]?.llmContent).toContain('result of a')
      expect(results[0]?.deliveryIds).toHaveLength(1)
      expect(host.of('a')).toBe('leased')
      rest.resolve(undefined)
      await turn
      await host.pass(60_000)
      expect(host.of('a')).toBe('delivered')
      expect(host.sent).toEqual([])
    })

    it('H6: is delivered by a message of its own, with its id and marked, when its turn has failed', async () => {
      const results: ToolResult[] = []
      const host: Host = setUp(
        [
          async () => {
            host.end('a')
            await tick()
            results.push(await call(host))
            host.end('b')
            throw OVERLOADED
          },
        ],
        withStore(),
      )
      await expect(host.turns.take('go')).rejects.toBe(OVERLOADED)
      for (let turn = 0; turn < 3; turn += 1) await host.pass(1000)
      expect(host.sent.map(({ taskIds, isRepeat }) => [taskIds.join(), isRepeat])).toEqual([
        ['a', true],
        ['b', undefined],
      ])
      expect(host.sent[0]?.deliveryId).toBe(results[0]?.deliveryIds?.[0])
      expect([host.of('a'), host.of('b')]).toEqual(['delivered', 'delivered'])
    })
  })

  it('H6: a synchronous task is delivered again when its turn has failed', async () => {
    const host: Host = setUp(
      [
        async () => {
          const { llmContent } = await host.tools.task.execute({ subagent_name: 'echo', goal_prompt: 'one' })
          expect(llmContent).toContain('echo one')
          throw OVERLOADED
        },
      ],
      withStore(),
    )
    await expect(host.turns.take('go')).rejects.toBe(OVERLOADED)
    for (let turn = 0; turn < 2; turn += 1) await host.pass(1000)
    expect(host.sent).toMatchObject([{ isRepeat: true }])
    expect(host.sent[0]?.text).toContain('echo one')
  })

  it('H6: a turn that delivers a message fails with what its tools have returned, each under its own id', async () => {
    const taken: ToolResult[] = []
    const host: Host = setUp(
      [
        async () => {
          host.end('b')
          await tick()
          taken.push(await host.tools.wait_for_async_tasks.execute({ task_ids: ['b'] }))
          throw OVERLOADED
        },
      ],
      withStore(),
    )
    host.end('a')
    await host.pass()
    await host.pass(1000)
    for (let turn = 0; turn < 2; turn += 1) await host.pass(1000)
    const [first, again, other] = host.sent
    expect(host.sent.map(({ taskIds }) => taskIds.join())).toEqual(['a', 'a', 'b'])
    expect(again).toMatchObject({ deliveryId: first?.deliveryId, isRepeat: true })
    expect(other).toMatchObject({ deliveryId: taken[0]?.deliveryIds?.[0], isRepeat: true })
  })
})

describe('a read', () => {
  it('H6: delivers a result when its turn was accepted, to an owner without messages', async () => {
    const turns = createTurns(async (text) => {
      const { deliveryIds } = await tasks.tools.check_async_tasks.execute({ task_id: 'a' })
      expect(deliveryIds).toHaveLength(1)
      expect(tasks.manager.getTask('a')?.delivery).toBe('leased')
      if (text === 'fail') throw OVERLOADED
    })
    const tasks = createAgentTasks()
    onTestFinished(() => tasks.dispose())
    tasks.manager.registerTask({ id: 'a', subagentName: 'agent', goalPrompt: 'look' })
    tasks.manager.completeTask('a', { final_message: 'found' })
    await expect(turns.take('fail')).rejects.toBe(OVERLOADED)
    expect(tasks.manager.getTask('a')).toMatchObject({ delivery: 'owed', isRepeat: true })
    await turns.take('go')
    expect(tasks.manager.getTask('a')?.delivery).toBe('delivered')
  })

  it('H6: of a tool that runs in the foreground belongs to its turn', async () => {
    const host: Host = setUp([
      async () => {
        expect((await search.execute({ run_in_background: false })).llmContent).toBe('found it')
        throw OVERLOADED
      },
    ])
    const search = host.tasks.background(
      defineTool({
        name: 'search',
        description: 'Searches.',
        inputSchema: z.strictObject({}),
        run: () => ({ llmContent: 'found it', returnDisplay: 'found it' }),
      }),
      { mode: 'choice' },
    )
    await expect(host.turns.take('go')).rejects.toBe(OVERLOADED)
    for (let turn = 0; turn < 2; turn += 1) await host.pass(1000)
    expect(host.sent).toMatchObject([{ isRepeat: true }])
    expect(host.sent[0]?.text).toContain('found it')
  })
})

describe('what outlives a turn', () => {
  it.each([
    ['resolved', false, 'delivered'],
    ['was rejected', true, 'owed'],
  ])('H6: a call that returns after its turn %s', async (_name, isFailing, delivery) => {
    let late: Promise<ToolResult> | undefined
    const host: Host = setUp(
      [
        () => {
          host.manager.registerTask({ id: 'a', subagentName: 'agent', goalPrompt: 'look' })
          late = host.tools.wait_for_async_tasks.execute({ task_ids: ['a'] })
          if (isFailing) throw OVERLOADED
        },
      ],
      { isAgentBusy: () => true },
    )
    await host.turns.take('go').catch(() => undefined)
    host.manager.completeTask('a', { final_message: 'late' })
    expect((await late)?.llmContent).toContain('late')
    expect(host.of('a')).toBe(delivery)
  })

  it('H6: a background run that was launched in a turn is outside of it', async () => {
    const started = deferred<undefined>()
    const host: Host = setUp(
      [
        async () => {
          host.tasks.launch('parent', 'go')
          await started.promise
          await tick()
          throw OVERLOADED
        },
      ],
      {
        isAgentBusy: () => true,
        subagents: {
          child: () => 'of the child',
          parent: async (_request, { taskId }) => {
            const { task } = host.tasks.toolsOfRun(taskId)
            await task.execute({ subagent_name: 'child', goal_prompt: 'work' })
            started.resolve(undefined)
            return 'of the parent'
          },
        },
      },
    )
    await host.turns.take('go').catch(() => undefined)
    const [parent, child] = host.manager.getAllTasks()
    expect(child).toMatchObject({ subagentName: 'child', delivery: 'delivered' })
    expect(child).not.toHaveProperty('isRepeat')
    expect(parent).toMatchObject({ subagentName: 'parent', delivery: 'owed' })
    expect(parent).not.toHaveProperty('isRepeat')
  })

  it('H6: onIdle in a turn ignores what the turn itself has received', async () => {
    const host: Host = setUp([
      async () => {
        host.end('b')
        await host.tools.wait_for_async_tasks.execute({ task_ids: ['b'] })
        await host.manager.onIdle()
        await host.manager.onIdle('main')
      },
    ])
    host.end('a')
    await host.pass()
    await host.pass()
    expect([host.of('a'), host.of('b')]).toEqual(['delivered', 'delivered'])
  })

  it('H6: the code of a host that reads the result of a handle in a turn keeps it', async () => {
    const host: Host = setUp([
      async () => {
        expect(await host.tasks.launch('echo', 'mine').result).toMatchObject({ final_message: 'echo mine' })
        throw OVERLOADED
      },
    ])
    await expect(host.turns.take('go')).rejects.toBe(OVERLOADED)
    await host.pass(1000)
    expect(host.sent).toEqual([])
    expect(host.manager.getAllTasks()).toMatchObject([{ delivery: 'delivered' }])
  })

  it('H6: a lease that the caller holds itself does not end with the turn', async () => {
    const held: { acknowledge(): void }[] = []
    const host: Host = setUp(
      [
        async () => {
          host.end('a')
          await host.tools.wait_for_async_tasks.execute({ task_ids: ['a'] }, { hold: (lease) => held.push(lease) })
          throw OVERLOADED
        },
      ],
      { isAgentBusy: () => true },
    )
    await host.turns.take('go').catch(() => undefined)
    expect(host.of('a')).toBe('leased')
    held[0]?.acknowledge()
    expect(host.of('a')).toBe('delivered')
  })
})

describe('withTurn', () => {
  it('H6: ends the leases of its tool calls, and passes them on to the turn around it', async () => {
    const host: Host = setUp(
      [
        async () => {
          host.end('b')
          await host.tasks.withTurn(() => host.tools.wait_for_async_tasks.execute({ task_ids: ['b'] }))
          expect(host.of('b')).toBe('leased')
          throw OVERLOADED
        },
      ],
      { isAgentBusy: () => true },
    )
    host.end('a')
    await host.tasks.withTurn(async ({ reminder }) => {
      reminder?.release()
      await host.tools.wait_for_async_tasks.execute({ task_ids: ['a'] })
      expect(host.of('a')).toBe('leased')
    })
    expect(host.of('a')).toBe('delivered')
    await host.turns.take('go').catch(() => undefined)
    expect(host.of('b')).toBe('owed')
  })
})

it('H6: with a store, a turn that a crash has cut off owes what its tools have returned, under their ids', async () => {
  const store = memoryStore()
  const results: ToolResult[] = []
  const crash = deferred<undefined>()
  const host: Host = setUp(
    [
      async () => {
        host.end('a', 'b')
        await tick()
        results.push(await host.tools.wait_for_async_tasks.execute({ task_ids: ['a', 'b'] }))
        await crash.promise
      },
    ],
    { store },
  )
  void host.turns.take('go').catch(() => undefined)
  await host.pass()
  expect(results).toHaveLength(1)
  const asked: string[] = []
  const next = setUp([], {
    store: store.copy(),
    wasDelivered: (id) => {
      asked.push(id)
      return undefined
    },
  })
  await next.tasks.recovered
  for (let turn = 0; turn < 2; turn += 1) await next.pass(1000)
  expect(asked).toEqual(results[0]?.deliveryIds)
  expect(next.sent).toMatchObject([{ deliveryId: asked[0], taskIds: ['a', 'b'], isRepeat: true }])
  crash.resolve(undefined)
})

it('K5: what one turn has received is unconfirmed until the next turn, its message and the results of its tools', async () => {
  const store = memoryStore()
  const host: Host = setUp(
    [
      async () => {
        host.end('b')
        await tick()
        await host.tools.wait_for_async_tasks.execute({ task_ids: ['b'] })
      },
    ],
    { store },
  )
  host.end('a')
  await host.pass()
  await host.pass()
  const unconfirmed = store.contents().deliveries.map(({ state, taskIds }) => `${state} ${taskIds.join()}`)
  expect(unconfirmed.sort()).toEqual(['accepted a', 'accepted b'])
})
