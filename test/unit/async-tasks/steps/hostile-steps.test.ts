/** Steps at their limits, and what an attacker or a careless run makes of them: F20. */
import { performance } from 'node:perf_hooks'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, type RunContext } from '../../../../src/index.js'
import { sqliteStore, StoreError, type MemoryStore } from '../../../../src/store/index.js'
import { breakableStore } from '../../../support/breakable-store.js'
import { durableProcess, settle } from './durable-host.js'

const never = (): Promise<never> => new Promise(() => undefined)

const codeOf = (error: unknown): unknown => (error as { code?: string }).code

/** Passes time, and lets everything happen that it brings. */
const pass = async ({ clock }: ReturnType<typeof durableProcess>, ms: number): Promise<void> => {
  clock.advance(ms)
  await settle()
}

describe('a wait whose end is stored, and whose process dies before its run goes on', () => {
  it('F20: is not waited for again, also when no slot was free', async () => {
    const runs: string[] = []
    const run = async ({ sleep, taskId }: RunContext): Promise<unknown> => {
      runs.push(taskId)
      await sleep(1000)
      return 'done'
    }
    const first = durableProcess(run, { maxAsyncTasks: 1, whenFull: 'queue' })
    await first.launch()
    const second = await first.next()
    expect(second.task()).toMatchObject({ status: 'queued' })
    // Another task has the only slot when the sleep is over.
    second.manager.launch({ id: 'other', subagentName: 'other', goalPrompt: 'x' }, never)
    await pass(second, 1000)
    expect(second.rows()[0]?.data).toHaveProperty('endedAt')
    expect(second.task()).toMatchObject({ status: 'queued' })
    const third = await second.next()
    expect(third.task()).toMatchObject({ status: 'completed' })
    expect(runs).toEqual(['task', 'task'])
  })

  it('F20: is not waited for again beside another wait, also when no slot was free', async () => {
    const first = durableProcess(({ sleep, waitFor }) => Promise.race([sleep(1000), waitFor('never')]), {
      maxAsyncTasks: 1,
      whenFull: 'queue',
    })
    await first.launch()
    const second = await first.next()
    second.manager.launch({ id: 'other', subagentName: 'other', goalPrompt: 'x' }, never)
    await pass(second, 1000)
    expect(second.task()).toMatchObject({ status: 'queued' })
    const third = await second.next()
    expect(third.task()).toMatchObject({ status: 'completed' })
  })

  it('F20: leads on when the run had waited for the first of two', async () => {
    const run = async ({ sleep, step, waitFor }: RunContext): Promise<unknown> => {
      await Promise.race([sleep(1000), waitFor('never')])
      await step('after', () => 1)
      return 'done'
    }
    let isDead = false
    const first = durableProcess(async (context) => {
      await run({ ...context, step: isDead ? context.step : never })
    })
    await first.launch()
    await pass(first, 1000)
    isDead = true
    const next = await first.next(run)
    expect(next.task()).toMatchObject({ status: 'completed' })
    expect(next.clock.pending).toBe(0)
  })

  it('F20: a run that begins to wait early, and works then, is not failed for restarts while it waits', async () => {
    let runs = 0
    const run = async ({ step, waitFor }: RunContext): Promise<unknown> => {
      runs += 1
      const approved = waitFor('approved')
      await step('work', () => 1)
      return { approved: await approved }
    }
    let present = durableProcess(run)
    await present.launch()
    for (let restart = 0; restart < 8; restart += 1) present = await present.next()
    // The first five of them could not know.
    expect(runs).toBe(6)
    expect(present.task()).toMatchObject({ status: 'queued' })
    await present.manager.emit('approved', true, { taskId: 'task' })
    await settle()
    expect(present.task()).toMatchObject({ status: 'completed', output: { approved: true } })
  })
})

describe('a run that gives back its slot', () => {
  it.each([
    ['a key', {}, { concurrencyKey: 'browser' }],
    ['a rate', { rate: { limit: 1, perMs: 60_000 } }, {}],
    ['a key and a limit of its own', { maxConcurrent: 1 }, { concurrencyKey: 'browser' }],
  ])('F20: takes it again where its task has %s, and does not count as another start', async (_, limits, fields) => {
    const first = durableProcess(async ({ sleep }) => sleep(1000), {
      definition: { releasesSlot: true, ...limits },
      maxAsyncTasks: 1,
      whenFull: 'queue',
    })
    await first.launch(fields)
    expect(first.manager.actor.getSnapshot()).toMatchObject({ slots: 0 })
    await pass(first, 1000)
    expect(first.task()).toMatchObject({ status: 'completed' })
    expect(first.manager.actor.getSnapshot()).toMatchObject({ slots: 0 })
    expect(first.manager.registry.limits.size).toBe(0)
    expect(first.clock.pending).toBe(0)
  })

  it('F20: waits for room under a limit that was lowered meanwhile, and takes none when it ends before', async () => {
    let end: () => void = () => undefined
    const first = durableProcess(
      async ({ sleep }) => {
        await Promise.race([sleep(1000), new Promise<void>((resolve) => (end = resolve))])
        return 'done'
      },
      { definition: { releasesSlot: true }, maxAsyncTasks: 2, whenFull: 'queue' },
    )
    await first.launch()
    first.manager.setMaxAsyncTasks(0)
    await pass(first, 1000)
    expect(first.task()).toMatchObject({ status: 'running' })
    expect(first.manager.registry.pools.task.queue.size).toBe(1)
    end()
    await settle()
    expect(first.task()).toMatchObject({ status: 'completed' })
    first.manager.setMaxAsyncTasks(2)
    await settle()
    expect(first.manager.actor.getSnapshot()).toMatchObject({ slots: 0 })
    expect(first.manager.registry.pools.task.queue).toMatchObject({ size: 0, bytes: 0 })
    expect(first.clock.pending).toBe(0)
  })

  it('F20: a pause of its owner holds back a run that is to start again, not one that goes on', async () => {
    const first = durableProcess(async ({ sleep }) => sleep(1000), {
      definition: { releasesSlot: true },
      maxAsyncTasks: 1,
    })
    await first.launch()
    const next = await first.next()
    next.manager.pause('main')
    await pass(next, 5000)
    expect(next.task()).toMatchObject({ status: 'queued' })
    next.manager.resume('main')
    await settle()
    expect(next.task()).toMatchObject({ status: 'completed' })
  })

  it('F20: keeps its slot while an event is there already', async () => {
    const slots: number[] = []
    const first = durableProcess(
      async ({ step, waitFor }) => {
        await step('a', () => first.manager.emit('go', 1, { taskId: 'task' }))
        const got = waitFor('go')
        slots.push(first.manager.actor.getSnapshot().slots)
        return { got: await got }
      },
      { definition: { releasesSlot: true } },
    )
    await first.launch()
    expect(slots).toEqual([1])
    expect(first.task()).toMatchObject({ status: 'completed', output: { got: 1 } })
  })

  it('F20: one that is stopped while it waits for its slot leaves none taken', async () => {
    const first = durableProcess(async ({ sleep }) => sleep(1000), {
      definition: { releasesSlot: true },
      maxAsyncTasks: 1,
      whenFull: 'queue',
    })
    await first.launch()
    first.manager.launch({ id: 'other', subagentName: 'other', goalPrompt: 'x' }, never)
    await pass(first, 1000)
    first.manager.cancelTask('task')
    await settle()
    first.manager.cancelTask('other')
    await settle()
    await pass(first, 1)
    expect(first.manager.actor.getSnapshot()).toMatchObject({ slots: 0, running: 0 })
    expect(first.manager.registry.pools.task.queue.size).toBe(0)
    expect(first.clock.pending).toBe(0)
  })
})

describe('a wait that an earlier run has left open', () => {
  const busy = (): Error => Object.assign(new Error('busy'), { code: 'RATE_LIMITED' })
  const retry = { attempts: 3, on: ['rate-limited' as const], backoff: { initialMs: 100, factor: 1, jitter: false } }

  it('F20: does not end a back-off, nor give the next run more time', async () => {
    let runs = 0
    const first = durableProcess(
      async ({ waitFor }) => {
        runs += 1
        void waitFor('go').catch(() => undefined)
        if (runs === 1) throw busy()
        await never()
      },
      { definition: { retry } },
    )
    await first.launch({ timeoutMs: 1000 })
    await first.manager.emit('go', 1, { taskId: 'task' })
    await settle()
    expect(runs).toBe(1)
    await pass(first, 100)
    expect(runs).toBe(2)
    await pass(first, 999)
    expect(first.task()).toMatchObject({ status: 'running' })
    await pass(first, 1)
    expect(first.task()?.status).not.toBe('completed')
    await pass(first, 1)
    expect(first.task()).toMatchObject({ status: 'failed', errorCode: 'TASK_TIMEOUT' })
  })

  it.each([true, false])(
    'F20: an event for it changes no limit of a run without steps (durable: %s)',
    async (durable) => {
      let runs = 0
      const first = durableProcess(
        async ({ waitFor }) => {
          runs += 1
          if (runs > 1) await never()
          void waitFor('go').catch(() => undefined)
          throw busy()
        },
        { definition: { retry, durable } },
      )
      await first.launch({ timeoutMs: 1000 })
      await pass(first, 100)
      await pass(first, 900)
      await first.manager.emit('go', 1, { taskId: 'task' })
      await pass(first, 100)
      await pass(first, 1)
      expect(first.task()).toMatchObject({ status: 'failed', errorCode: 'TASK_TIMEOUT' })
    },
  )
})

describe('events', () => {
  it('F20: one that is too large is refused, and the run goes on waiting', async () => {
    const first = durableProcess(async ({ waitFor }) => ({ got: await waitFor('go') }))
    await first.launch()
    const emit = (value: unknown): Promise<unknown> => first.manager.emit('go', value, { taskId: 'task' })
    await expect(emit('x'.repeat(2 * 1024 * 1024))).rejects.toMatchObject({ field: 'value' })
    await emit('small')
    await settle()
    expect(first.task()).toMatchObject({ status: 'completed', output: { got: 'small' } })
  })

  it('F20: reach the durable tasks of an owner that have not had a step yet, and those that wait for a slot', async () => {
    let go: () => void = () => undefined
    const first = durableProcess(
      async ({ waitFor }) => {
        await new Promise<void>((resolve) => (go = resolve))
        return { got: await waitFor('go') }
      },
      { maxAsyncTasks: 1, whenFull: 'queue' },
    )
    await first.launch()
    await first.launch({ id: 'second' })
    await first.launch({ id: 'of-other', owner: 'other' })
    expect(await first.manager.emit('go', 7, { owner: 'main' })).toEqual(['task', 'second'])
    for (const id of ['task', 'second']) {
      go()
      await settle()
      expect(first.manager.getTask(id)).toMatchObject({ status: 'completed', output: { got: 7 } })
    }
    expect(first.rows().every(({ data }) => data['taskId'] === 'of-other')).toBe(true)
  })

  it('F20: one that comes between two runs is kept for the next one', async () => {
    let runs = 0
    const first = durableProcess(
      async ({ waitFor }) => {
        runs += 1
        if (runs === 1) throw Object.assign(new Error('busy'), { code: 'RATE_LIMITED' })
        return { got: [await waitFor('go'), await waitFor('go')] }
      },
      { definition: { retry: { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 100, jitter: false } } } },
    )
    await first.launch()
    for (const value of [1, 2]) await first.manager.emit('go', value, { taskId: 'task' })
    expect(first.rows()).toHaveLength(2)
    const next = await first.next()
    await pass(next, 100)
    expect(next.task()).toMatchObject({ status: 'completed', output: { got: [1, 2] } })
    expect(next.rows()).toEqual([])
  })
})

describe('the limits of steps', () => {
  it('F20: a task may have 1,000 steps, and its next run replays them in linear time', async () => {
    const run = async ({ step }: RunContext): Promise<unknown> => {
      for (let count = 0; count < 1000; count += 1) await step('s', () => count)
      return step('one too many', () => 1).catch(codeOf)
    }
    const first = durableProcess(run)
    await first.launch()
    while (first.task()?.status === 'running') await settle()
    expect(first.task()).toMatchObject({ status: 'completed', output: { final_message: '"STEP_LIMIT"' } })
  })

  it('F20: the replay of 1,000 steps, alone or at once, looks at each of them a few times', async () => {
    for (const isAtOnce of [false, true]) {
      const run = async ({ step }: RunContext): Promise<unknown> => {
        const all = Array.from({ length: 999 }, (_, at) => () => step(`s${at}`, () => at))
        if (isAtOnce) await Promise.all(all.map((each) => each()))
        else for (const each of all) await each()
        return step('last', never)
      }
      const first = durableProcess(run)
      await first.launch()
      while (first.rows().filter(({ data }) => data['endedAt'] !== undefined).length < 999) await settle()
      const began = performance.now()
      const next = await first.next()
      while (next.task()?.status === 'running' && next.rows().length < 1000) await settle()
      // About 15 ms on a machine with nothing else to do.
      expect(performance.now() - began).toBeLessThan(3000)
    }
  })

  it('F20: results of more than 64 MiB together fail the step that exceeds them, and failures that are forgotten do not count', async () => {
    const part = 'x'.repeat(1024 * 1024 - 2)
    let failures = 0
    const first = durableProcess(async ({ step, waitFor }) => {
      for (let count = 0; count < 63; count += 1) await step('part', () => part)
      const got = await step('last', () => 'x'.repeat(1024 * 1024)).catch(codeOf)
      const also = await step('fits', () => 'x'.repeat(1000 * 1024)).then(() => 'fits', codeOf)
      const none = await step('none', () => part).catch(codeOf)
      failures += 1
      const event = await waitFor('go').catch(codeOf)
      return [got, also, none, event]
    })
    await first.launch()
    while (failures === 0) await settle()
    await first.manager.emit('go', 'x'.repeat(200 * 1024), { taskId: 'task' })
    await settle()
    expect(first.task()).toMatchObject({
      status: 'completed',
      output: { final_message: '["STEP_LIMIT","fits","STEP_LIMIT","STEP_LIMIT"]' },
    })
  })

  it('F20: the room of a failure that is forgotten is free again', async () => {
    let runs = 0
    const message = 'x'.repeat(60_000)
    // 450 KiB are left.
    const part = 'x'.repeat(1017 * 1024)
    const first = durableProcess(
      async ({ step }) => {
        runs += 1
        for (let count = 0; count < 64; count += 1) await step('part', () => part)
        return runs > 12
          ? 'done'
          : step('fails', () => Promise.reject(Object.assign(new Error(message), { code: 'RATE_LIMITED' })))
      },
      { definition: { retry: { attempts: 60, on: ['rate-limited'], backoff: { initialMs: 0 } } } },
    )
    await first.launch()
    for (let turn = 0; turn < 400 && first.task()?.status !== 'completed'; turn += 1) await pass(first, 1)
    expect(first.task()).toMatchObject({ status: 'completed' })
  })

  it('F20: children whose results are too large together are still owed, and the failure is the same in each run', async () => {
    const caught: unknown[] = []
    const large = 'x'.repeat(700_000)
    const run = async ({ launch, children, step }: RunContext): Promise<unknown> => {
      const ids = [1, 2].map(() => launch({ subagentName: 'child', goalPrompt: 'x' }, () => large).id)
      await children.waitFor(ids).catch((error: unknown) => caught.push(codeOf(error)))
      await step('hang', () => (caught.length === 1 ? never() : 0))
      return (await children.waitFor(ids.slice(0, 1))).settled.length
    }
    const first = durableProcess(run)
    await first.launch()
    const next = await first.next()
    expect(caught).toEqual(['STEP_LIMIT', 'STEP_LIMIT'])
    expect(next.task()).toMatchObject({ status: 'completed', output: { final_message: '1' } })
  })

  it('F20: a child with a goal above 1 MiB is launched once, and keys of waits for many children are short', async () => {
    let launched = 0
    const goalPrompt = 'x'.repeat(1_100_000)
    const run = async ({ launch, children, step }: RunContext): Promise<unknown> => {
      launch({ subagentName: 'child', goalPrompt }, () => {
        launched += 1
        return 'found'
      })
      const ids = [...Array.from({ length: 200 }, (_, at) => `${at}-unknown-with-a-long-name`)]
      const { settled, unknown } = await children.waitFor(ids)
      await step('hang', () => (launched > 1 ? 0 : never()))
      return [settled.length, unknown.length]
    }
    const first = durableProcess(run)
    await first.launch()
    expect(launched).toBe(1)
    for (const { id } of first.rows()) expect(id.length).toBeLessThan(500)
    launched = 2
    const next = await first.next()
    expect(next.task()).toMatchObject({ status: 'completed', output: { final_message: '[0,200]' } })
    expect(launched).toBe(2)
  })
})

describe('names and values that a store may not hold', () => {
  it('F20: names of prototypes are names like others', async () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
    const done: string[] = []
    const run = async ({ step }: RunContext): Promise<unknown> => {
      for (const name of names) await step(name, () => done.push(name) && (JSON.parse('{"__proto__":1}') as unknown))
      await step('hang', () => (done.includes('crash') ? 0 : never()))
      return 'done'
    }
    const first = durableProcess(run)
    await first.launch()
    done.push('crash')
    const next = await first.next()
    expect(next.task()).toMatchObject({ status: 'completed' })
    expect(done).toEqual([...names, 'crash'])
  })

  it('F20: a lone surrogate in a name is refused: two of them would be one in UTF-8', async () => {
    const first = durableProcess(async ({ step }) => step('a\uD800', () => 1))
    await first.launch()
    expect(first.task()).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('lone surrogates') as unknown,
    })
  })

  it('F20: tasks and steps with slashes in their names have rows of their own', async () => {
    const first = durableProcess(async ({ step, taskId }) => {
      await step(taskId === 'a' ? 'x/step/y' : 'y', () => 1)
      await step('hang', never)
    })
    await first.launch({ id: 'a' })
    await first.launch({ id: 'a/step/x' })
    expect(first.rows()).toHaveLength(4)
  })

  it('F20: results, failures and events of NUL and lone surrogates come back from SQLite as they were', async () => {
    const value = { nul: 'a\0b', lone: '\uD800', other: 'x\uDC00y', ['\0']: 1, line: '\u2028' }
    const seen: unknown[] = []
    const first = durableProcess(async ({ step, waitFor }) => {
      seen.push(await step('a', () => value))
      seen.push(
        await step('b', () => Promise.reject(new Error('\0\uD800'))).catch(
          (error: unknown) => (error as Error).message,
        ),
      )
      seen.push(await waitFor('e'))
      await step('hang', never)
    })
    await first.launch()
    await first.manager.emit('e', value, { taskId: 'task' })
    await settle()
    expect(seen).toEqual([value, '\0\uD800', value])
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-steps-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const store = sqliteStore(join(folder, 'tasks.db'))
    store.open()
    await store.write(first.rows().map((put) => ({ table: 'featureStates', put })))
    store.close()
    const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1)
    expect(store.open().featureStates.toSorted(byId)).toEqual(first.rows().toSorted(byId))
    store.close()
  })
})

describe('stored steps that are malformed', () => {
  const damage = (store: MemoryStore, change: (data: Record<string, unknown>) => object): MemoryStore => {
    const copy = store.copy()
    const opened = copy.open()
    void copy.write(
      opened.featureStates
        .filter(({ feature }) => feature === 'steps')
        .map((row) => ({ table: 'featureStates', put: { ...row, data: change({ ...row.data }) as never } })),
    )
    copy.close()
    return copy
  }

  it.each([
    ['no key', { key: undefined }],
    ['a negative time', { activeMs: -1 }],
    ['a place that is no number', { beganAt: 'x' }],
    ['a place of 0', { endedAt: 0 }],
    ['a result that is no JSON', { result: '{' }],
    ['a failure that is none', { failure: 'null' }],
    ['a failure that is no JSON', { failure: '{' }],
    ['another kind', { kind: 'other' }],
    ['no task', { taskId: 5 }],
  ])('F20: with %s are dropped and reported, and the step runs again', async (_, fields) => {
    let done = 0
    const run = async ({ step }: RunContext): Promise<unknown> => {
      await step('a', () => (done += 1))
      return done > 1 ? 'done' : never()
    }
    const first = durableProcess(run)
    await first.launch()
    const next = durableProcess(
      run,
      {},
      damage(first.store, (data) => ({ ...data, ...fields })),
    )
    await next.manager.recovered
    await settle()
    expect(next.task()).toMatchObject({ status: 'completed' })
    expect(done).toBe(2)
    expect(next.errors.map(codeOf)).toEqual(['STORE_DAMAGED'])
    expect(next.rows()).toEqual([])
  })

  it('F20: a wait whose row was lost does not keep its task waiting', async () => {
    const first = durableProcess(async ({ waitFor }) => waitFor('go', { timeoutMs: 1000 }))
    await first.launch()
    const second = await first.next()
    expect(second.task()).toMatchObject({ status: 'queued' })
    const third = durableProcess(
      async ({ waitFor }) => waitFor('go', { timeoutMs: 1000 }),
      {},
      damage(second.store, () => ({})),
    )
    await third.manager.recovered
    await settle()
    expect(third.task()).toMatchObject({ status: 'running' })
  })

  it.each(['x', null, { progress: 'x', fruitless: '4' }, []])(
    'F20: a count of interruptions that is none (%j) is as if there were none',
    async (interruption) => {
      const first = durableProcess(async ({ step }) => step('a', never))
      await first.launch()
      const copy = first.store.copy()
      const [row] = copy.open().tasks
      await copy.write([{ table: 'tasks', put: { ...row, run: { ...row?.run, interruption } } as never }])
      copy.close()
      const next = durableProcess(async ({ step }) => step('a', never), {}, copy)
      await next.manager.recovered
      await settle()
      expect(next.task()).toMatchObject({ status: 'running' })
    },
  )
})

describe('a store that fails', () => {
  it('F20: for a while: no step ends before it is stored, and all go on then', async () => {
    const { store, memory, state } = breakableStore()
    const seen: unknown[] = []
    const first = durableProcess(
      async ({ step, sleep, waitFor }) => {
        seen.push(await step('a', () => 1))
        await sleep(100)
        seen.push('slept')
        seen.push(await waitFor('go'))
        return 'done'
      },
      {},
      store as MemoryStore,
    )
    await first.launch()
    expect(seen).toEqual([1])
    state.isBroken = true
    await pass(first, 100)
    expect(seen).toEqual([1])
    await expect(first.manager.emit('go', 2, { taskId: 'task' })).rejects.toBeInstanceOf(StoreError)
    state.isBroken = false
    for (let turn = 0; turn < 200 && seen.length < 3; turn += 1) await pass(first, 100)
    expect(seen).toEqual([1, 'slept', 2])
    await settle()
    expect(first.task()).toMatchObject({ status: 'completed' })
    expect(memory.contents().featureStates.filter(({ feature }) => feature === 'steps')).toEqual([])
  })

  it('F20: for ever: what waits for it never settles, also when the manager is disposed', async () => {
    const { store, state } = breakableStore()
    const ends: unknown[] = []
    const first = durableProcess(
      async ({ step }) => {
        await step('a', () => (state.isBroken = true)).then(
          () => ends.push('stored'),
          () => ends.push('given up'),
        )
      },
      {},
      store as MemoryStore,
    )
    await first.launch()
    expect(ends).toEqual([])
    const disposed = first.manager.dispose()
    await pass(first, 10_000)
    await disposed
    expect(ends).toEqual([])
    expect(first.clock.pending).toBe(0)
  })
})

describe('a durable run that ends in another way', () => {
  it.each(['sleep', 'event'] as const)('F20: nothing is left of a %s when the manager is disposed', async (kind) => {
    const first = durableProcess(async ({ sleep, waitFor }) => {
      await (kind === 'sleep' ? sleep(1000) : waitFor('x', { timeoutMs: 1000 }))
    })
    await first.launch()
    const disposed = first.manager.dispose()
    await pass(first, 1)
    await disposed
    expect(first.clock.pending).toBe(0)
  })

  it('F20: the steps of a run that was repeated are refused', async () => {
    const contexts: RunContext[] = []
    const first = durableProcess(
      async (context) => {
        contexts.push(context)
        if (contexts.length === 1) throw Object.assign(new Error('busy'), { code: 'RATE_LIMITED' })
        return { got: await context.waitFor('go') }
      },
      { definition: { retry: { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 0 } } } },
    )
    await first.launch()
    await pass(first, 1)
    expect(contexts).toHaveLength(2)
    const [old] = contexts
    await expect(old?.step('b', () => 1)).rejects.toMatchObject({ code: 'RUN_ENDED' })
    await expect(old?.sleep(1)).rejects.toMatchObject({ code: 'RUN_ENDED' })
    expect(first.rows()).toHaveLength(1)
    await first.manager.emit('go', 1, { taskId: 'task' })
    await settle()
    expect(first.task()).toMatchObject({ status: 'completed', output: { got: 1 } })
    await expect(contexts[1]?.step('b', () => 1)).rejects.toMatchObject({ code: 'RUN_ENDED' })
  })

  it('F20: a refused nested step does not change the keys of the next run', async () => {
    let runs = 0
    const run = async ({ step }: RunContext): Promise<unknown> => {
      runs += 1
      await step('outer', () => step('inner', () => 1).catch(() => undefined))
      await step('inner', () => 2)
      await step('hang', () => (runs === 1 ? never() : 0))
      return 'done'
    }
    const first = durableProcess(run)
    await first.launch()
    const next = await first.next()
    expect(next.task()).toMatchObject({ status: 'completed' })
  })

  it('F20: a clock that was set back does not make a sleep longer, also beside a step that was open', async () => {
    let isLast = false
    const run = async ({ sleep, step }: RunContext): Promise<unknown> => {
      await Promise.all([sleep(60_000), step('a', () => (isLast ? 0 : never()))])
      return 'done'
    }
    const first = durableProcess(run, { at: 1_000_000 })
    await first.launch()
    isLast = true
    const next = await first.next(run, { at: 1000 })
    await pass(next, 30_000)
    await pass(next, 30_000)
    expect(next.task()).toMatchObject({ status: 'completed' })
  })

  it('F20: nothing of a task without a store is kept when it has ended', async () => {
    const manager = new AsyncTaskManager()
    manager.launch({ id: 'task', subagentName: 'agent', goalPrompt: 'x' }, async (_, { step, waitFor }) => {
      await step('a', () => 1)
      await waitFor('go')
      return 'done'
    })
    await settle()
    await manager.emit('go', 1, { taskId: 'task' })
    await manager.waitFor(['task'])
    await expect(manager.emit('go', 1, { taskId: 'task' })).rejects.toMatchObject({ field: 'target.taskId' })
    await manager.dispose()
  })
})
