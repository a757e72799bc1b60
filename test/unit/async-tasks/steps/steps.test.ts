/** Steps: F20. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager, type RunContext } from '../../../../src/index.js'
import { durableProcess, settle } from './durable-host.js'

const never = (): Promise<never> => new Promise(() => undefined)

describe('a durable task whose process dies', () => {
  it('F20: does not do again what a step has done, and goes on behind it', async () => {
    const done: string[] = []
    const run = async ({ step }: RunContext): Promise<unknown> => {
      const a = await step('a', () => done.push('a'))
      const b = await step('b', () => {
        done.push('b')
        return { at: new Date(0), gone: undefined }
      })
      if (done.length === 2) await step('c', never)
      return [a, b, await step('c', () => done.push('c'))]
    }
    const first = durableProcess(run)
    await first.launch()
    expect(done).toEqual(['a', 'b'])
    expect(first.rows().map(({ data }) => [data['key'], data['endedAt'] !== undefined])).toEqual([
      ['a', true],
      ['b', true],
      ['c', false],
    ])
    done.push('crash')
    const next = await first.next()
    expect(done).toEqual(['a', 'b', 'crash', 'c'])
    expect(next.task()).toMatchObject({
      status: 'completed',
      output: { final_message: '[1,{"at":"1970-01-01T00:00:00.000Z"},4]' },
    })
    expect(next.task()?.attempt).toBeUndefined()
    await settle()
    expect(next.rows()).toEqual([])
  })

  it('F20: gives the first run the JSON copy of a result as well', async () => {
    const seen: unknown[] = []
    const first = durableProcess(async ({ step }) => {
      seen.push(await step('a', () => ({ at: new Date(0), gone: undefined })))
      seen.push(await step<unknown>('b', () => undefined))
    })
    await first.launch()
    expect(seen).toEqual([{ at: '1970-01-01T00:00:00.000Z' }, undefined])
  })

  it('F20: throws the failure of a step again, with the fields by which code recognises it, until the task is repeated for another reason', async () => {
    let calls = 0
    const caught: unknown[] = []
    const run = async ({ step }: RunContext): Promise<unknown> => {
      try {
        return await step('a', () => {
          calls += 1
          throw Object.assign(new TypeError('refused'), { code: 'REFUSED', status: 403, secret: 'x' })
        })
      } catch (error) {
        const { name, message } = error as Error
        caught.push({ name, message, ...(error as object) })
        await step('b', never)
        return 0
      }
    }
    const first = durableProcess(run)
    await first.launch()
    await first.next()
    expect(calls).toBe(1)
    const expected = { name: 'TypeError', message: 'refused', code: 'REFUSED', status: 403 }
    expect(caught).toEqual([expected, expected])
  })

  it('F20: a step is attempted as often as it says, and a failure is stored after the last attempt', async () => {
    let calls = 0
    const first = durableProcess(async ({ step }) =>
      step(
        'a',
        () => {
          calls += 1
          throw new Error(`failure ${calls}`)
        },
        { attempts: 3, backoff: { initialMs: 10, factor: 2 } },
      ),
    )
    await first.launch()
    expect(first.rows()[0]?.data).not.toHaveProperty('failure')
    first.clock.advance(10)
    await settle()
    expect(calls).toBe(2)
    first.clock.advance(20)
    await settle()
    expect(first.task()).toMatchObject({ status: 'failed', error: 'failure 3' })
  })

  it('F20: nothing of a step that is aborted is stored as a failure, and its timers go', async () => {
    const first = durableProcess(async ({ step }) =>
      step('a', () => Promise.reject(new Error('no')), { attempts: 9, backoff: { initialMs: 1000 } }),
    )
    await first.launch()
    expect(first.clock.pending).toBe(1)
    first.manager.cancelTask('task')
    await settle()
    expect(first.clock.pending).toBe(0)
    expect(first.rows()).toEqual([])
  })

  it('F20: refuses steps inside steps, steps of the same name that overlap, and names and results that cannot be stored', async () => {
    const caught: unknown[] = []
    const note = (error: unknown): void => void caught.push((error as { code?: string }).code)
    const first = durableProcess(async ({ step, launch, sleep }) => {
      await step('outer', async () => {
        await step('inner', () => 1).catch(note)
        await sleep(1).catch(note)
        try {
          launch({ subagentName: 'child', goalPrompt: 'x' })
        } catch (error) {
          note(error)
        }
      })
      const open = step('twice', () => Promise.resolve(1))
      await step('twice', () => 1).catch(note)
      await open
      await step('a#2', () => 1).catch(note)
      await step('bigint', () => 1n).catch(note)
      await step('large', () => 'x'.repeat(1024 * 1024)).catch(note)
      await sleep(Number.NaN).catch(note)
      return 'done'
    })
    await first.launch()
    expect(first.task()).toMatchObject({ status: 'completed' })
    const invalid = 'INVALID_INPUT'
    expect(caught).toEqual([
      ...['STEP_NESTED', 'STEP_NESTED', 'STEP_NESTED', invalid, invalid, invalid, 'STEP_LIMIT', invalid],
    ])
  })

  it('F20: a retry within the process repeats the step that has failed, and keeps the results', async () => {
    const done: string[] = []
    let failures = 2
    const first = durableProcess(
      async ({ step }) => {
        await step('a', () => done.push('a'))
        await step('b', () => {
          done.push('b')
          if ((failures -= 1) >= 0) throw Object.assign(new Error('busy'), { code: 'RATE_LIMITED' })
        })
        return 'done'
      },
      { definition: { retry: { attempts: 3, on: ['rate-limited'], backoff: { initialMs: 10, factor: 1 } } } },
    )
    await first.launch()
    for (let count = 0; count < 2; count += 1) {
      first.clock.advance(10)
      await settle()
    }
    expect(done).toEqual(['a', 'b', 'b', 'b'])
    expect(first.task()).toMatchObject({ status: 'completed', attempt: 3 })
  })

  it('F20: fails with STEPS_CHANGED, which names both, when another step comes next, also if the run catches it', async () => {
    const first = durableProcess(async ({ step }) => {
      await step('fetch', () => 1)
      await step('send', () => 2)
      await step('wait', never)
    })
    await first.launch()
    const next = await first.next(async ({ step }) => {
      await step('fetch', () => 1)
      await step('mail', () => 2).catch(() => undefined)
      return 'fine'
    })
    expect(next.task()).toMatchObject({
      status: 'failed',
      errorCode: 'STEPS_CHANGED',
      error: expect.stringContaining('step "send" where this run requests step "mail"') as unknown,
    })
  })

  it('F20: completes when it requests fewer steps than are stored, because its work is finished', async () => {
    const first = durableProcess(async ({ step }) => {
      await step('fetch', () => 1)
      await step('send', () => 2)
      await step('wait', never)
    })
    await first.launch()
    const next = await first.next(async ({ step }) => step('fetch', () => 3))
    expect(next.task()).toMatchObject({ status: 'completed' })
  })

  it('F20: steps that overlap may come in another order', async () => {
    const done: string[] = []
    const order =
      (names: string[]) =>
      async ({ step }: RunContext) => {
        const all = names.map((name) => step(name, () => Promise.resolve(done.push(name))))
        await Promise.all(all)
        if (done.length === 2) await step('c', never)
        return 'done'
      }
    const first = durableProcess(order(['a', 'b']))
    await first.launch()
    done.push('crash')
    const next = await first.next(order(['b', 'a']))
    expect(next.task()).toMatchObject({ status: 'completed' })
    expect(done).toEqual(['a', 'b', 'crash'])
  })

  it('F20: interruptions count only if nothing was saved since the last one, and five of those fail it', async () => {
    const run = async ({ step }: RunContext): Promise<unknown> => {
      await step('a', () => 1)
      return step('b', never)
    }
    let present = durableProcess(run)
    await present.launch()
    const attempts: unknown[] = []
    for (let crash = 1; crash <= 6; crash += 1) {
      present = await present.next()
      attempts.push([present.task()?.status, present.task()?.attempt])
    }
    expect(attempts).toEqual([
      ['running', undefined],
      ['running', 2],
      ['running', 3],
      ['running', 4],
      ['running', 5],
      ['failed', 5],
    ])
    expect(present.task()).toMatchObject({
      errorCode: 'INTERRUPTED',
      error: expect.stringContaining('5 times in a row without having saved anything new') as unknown,
    })
    await settle()
    expect(present.rows()).toEqual([])
  })

  it('F20: 50 crashes do not fail a task that gets on', async () => {
    let next = 0
    const run = async ({ step }: RunContext): Promise<unknown> => {
      for (let number = 0; number < 50; number += 1) await step('part', () => (number < next ? number : never()))
      return 'done'
    }
    let present = durableProcess(run)
    await present.launch()
    for (; next < 50;) {
      next += 1
      present = await present.next()
      expect(present.task()?.attempt).toBeUndefined()
    }
    expect(present.task()).toMatchObject({ status: 'completed' })
  })
})

describe('a run that waits for its children', () => {
  const child = { id: 'child', subagentName: 'helper', goalPrompt: 'help', whenFull: 'queue' } as const
  const waits: Record<string, (context: RunContext) => Promise<unknown>> = {
    alone: ({ children }) => children.waitFor(),
    'for one of them': ({ children }) => children.waitFor(['child'], { mode: 'any' }),
    'beside a sleep that is over': ({ children, sleep }) => Promise.all([children.waitFor(), sleep(1)]),
    'against a longer sleep': ({ children, sleep }) => Promise.race([children.waitFor(), sleep(1_000_000)]),
  }

  it.each(Object.entries(waits))('F20: may be interrupted any number of times, %s', async (_how, wait) => {
    let runs = 0
    const run = async (context: RunContext): Promise<unknown> => {
      runs += 1
      context.launch(child)
      await wait(context)
      return 'done'
    }
    let present = durableProcess(run, { maxChildTasks: 0 })
    await present.launch()
    present.clock.advance(1)
    await settle()
    for (let crash = 1; crash <= 12; crash += 1) present = await present.next()
    expect(present.task()).toMatchObject({ status: 'queued' })
    expect(present.task()?.attempt ?? 1).toBeLessThanOrEqual(5)
    expect(present.manager.getTask('child')).toMatchObject({ status: 'queued', owner: 'run:task' })
    const before = runs
    const last = await present.next(run, { maxChildTasks: 1 })
    expect(last.task()).toMatchObject({ status: 'completed' })
    expect(last.manager.getTask('child')).toMatchObject({ status: 'completed', delivery: 'delivered' })
    expect(runs).toBe(before + 1)
    expect(last.rows()).toEqual([])
  })

  it('F20: waits no longer than its time limit, however often it is interrupted', async () => {
    const run = async ({ launch, children }: RunContext): Promise<unknown> => {
      launch(child)
      const { pending } = await children.waitFor(undefined, { timeoutMs: 1000 })
      return { left: pending.map(({ id }) => id) }
    }
    let present = durableProcess(run, { maxChildTasks: 0 })
    await present.launch()
    for (let crash = 1; crash <= 9; crash += 1) {
      present.clock.advance(100)
      present = await present.next()
    }
    expect(present.task()).toMatchObject({ status: 'queued' })
    present.clock.advance(100)
    await settle()
    present.clock.advance(0)
    await settle()
    expect(present.task()).toMatchObject({ status: 'completed', output: { left: ['child'] } })
  })
})

describe('sleep and waitFor', () => {
  it('F20: a sleep goes on over a restart: the run starts again when it is over, with the slot that is free then', async () => {
    const runs: string[] = []
    const run = async ({ sleep, step }: RunContext): Promise<unknown> => {
      runs.push('run')
      await sleep(60_000)
      await step('a', () => runs.push('a'))
      return 'done'
    }
    const first = durableProcess(run)
    await first.launch()
    first.clock.advance(20_000)
    const next = await first.next()
    expect(runs).toEqual(['run'])
    expect(next.task()).toMatchObject({ status: 'queued' })
    expect(next.manager.actor.getSnapshot().slots).toBe(0)
    const third = await next.next()
    third.clock.advance(39_000)
    await settle()
    expect(runs).toEqual(['run'])
    third.clock.advance(1_000)
    await settle()
    expect(runs).toEqual(['run', 'run', 'a'])
    expect(third.task()).toMatchObject({ status: 'completed' })
    expect(third.task()?.attempt).toBeUndefined()
    expect(third.clock.pending).toBe(0)
  })

  it('F20: a sleep that is over while no process runs does not start over', async () => {
    const first = durableProcess(async ({ sleep }) => {
      await sleep(60_000)
      return 'done'
    })
    await first.launch()
    const next = await first.next(undefined, { at: 100_000 })
    expect(next.task()).toMatchObject({ status: 'completed' })
  })

  it('F20: a clock that was set back does not make a sleep longer than it was to be', async () => {
    const first = durableProcess(async ({ sleep }) => sleep(60_000), { at: 1_000_000 })
    await first.launch()
    const next = await first.next(undefined, { at: 1000 })
    next.clock.advance(60_000)
    await settle()
    expect(next.task()).toMatchObject({ status: 'completed' })
  })

  it('F20: an event is kept until it is taken, once, also over a restart', async () => {
    const seen: unknown[] = []
    const run = async ({ waitFor, step }: RunContext): Promise<unknown> => {
      seen.push(await waitFor('paid'))
      await step('a', () => (seen.length < 2 ? never() : 0))
      return seen.push(await waitFor('paid', { timeoutMs: 50 }))
    }
    const first = durableProcess(async ({ step }) => step('early', never), {})
    await first.launch()
    expect(await first.manager.emit('paid', { amount: 3 }, { taskId: 'task' })).toEqual(['task'])
    expect(first.rows()).toHaveLength(2)
    const second = await first.next(async (context) => {
      await context.step('early', () => 0)
      return run(context)
    })
    expect(seen).toEqual([{ amount: 3 }])
    const third = await second.next(async (context) => {
      await context.step('early', () => 0)
      return run(context)
    })
    expect(seen).toEqual([{ amount: 3 }, { amount: 3 }])
    third.clock.advance(50)
    await settle()
    expect(seen).toEqual([{ amount: 3 }, { amount: 3 }, undefined])
    expect(third.task()).toMatchObject({ status: 'completed' })
  })

  it('F20: a run that waits for an event starts again when it comes', async () => {
    let runs = 0
    const first = durableProcess(async ({ waitFor }) => {
      runs += 1
      return { got: await waitFor('go') }
    })
    await first.launch()
    const next = await first.next()
    expect(runs).toBe(1)
    expect(await next.manager.emit('go', undefined, { owner: 'main' })).toEqual(['task'])
    await settle()
    expect(next.task()).toMatchObject({ status: 'completed', output: { got: null } })
    expect(runs).toBe(2)
  })

  it('F20: refuses an event above the limits, and for a task that has ended, and sends it to no one then', async () => {
    const first = durableProcess(async ({ waitFor }) => waitFor('never'))
    await first.launch()
    const send = (value: unknown, event = 'other'): Promise<unknown> =>
      first.manager.emit(event, value, { taskId: 'task' })
    for (let count = 0; count < 100; count += 1) await send(count)
    await expect(send(100)).rejects.toMatchObject({ code: 'EVENTS_FULL' })
    await expect(first.manager.emit('x', 1, { taskId: 'gone' })).rejects.toMatchObject({ field: 'target.taskId' })
    await expect(send(1n)).rejects.toMatchObject({ field: 'value' })
    await expect(send(1, 'a#1')).rejects.toMatchObject({ field: 'event' })
    expect(first.rows()).toHaveLength(101)
    first.manager.cancelTask('task')
    await settle()
    expect(first.rows()).toEqual([])
    expect(first.clock.pending).toBe(0)
  })

  it.each([
    [{ timeoutMs: 1000 }, 'TASK_TIMEOUT'],
    [{ budget: { seconds: 1, wrapUpMs: 0 } }, 'BUDGET_EXCEEDED'],
  ])(
    'F20: time in which it waits does not count for %j, and active time adds up over restarts',
    async (limit, errorCode) => {
      let end: () => void = () => undefined
      const run = async ({ sleep, step }: RunContext): Promise<unknown> => {
        await step('a', () => new Promise<void>((resolve) => (end = resolve)))
        await sleep(1_000_000)
        return step('b', never)
      }
      const first = durableProcess(run)
      await first.launch(limit)
      first.clock.advance(400)
      end()
      await settle()
      first.clock.advance(600_000)
      await settle()
      expect(first.task()).toMatchObject({ status: 'running' })
      const next = await first.next()
      next.clock.advance(400_000)
      await settle()
      expect(next.task()).toMatchObject({ status: 'running' })
      next.clock.advance(599)
      await settle()
      expect(next.task()).toMatchObject({ status: 'running' })
      next.clock.advance(1)
      await settle()
      next.clock.advance(0)
      await settle()
      expect(next.task()).toMatchObject({ status: 'failed', errorCode })
    },
  )
})

describe('the tasks that a durable run launches', () => {
  it('F20: are kept by a run that starts again, which takes their results once', async () => {
    const results: unknown[] = []
    let launched = 0
    const run = async ({ launch, children, step }: RunContext): Promise<unknown> => {
      const child = launch({ subagentName: 'child', goalPrompt: 'look' }, () => {
        launched += 1
        return 'found'
      })
      await step('between', () => 1)
      const { settled } = await children.waitFor([child.id])
      results.push(settled.map(({ id, status, output }) => ({ id, status, output })))
      await step('after', () => (results.length === 1 ? never() : 0))
      return child.id
    }
    const first = durableProcess(run)
    await first.launch()
    const next = await first.next()
    expect(launched).toBe(1)
    expect(results[0]).toMatchObject([{ status: 'completed', output: { final_message: 'found' } }])
    expect(results).toEqual([results[0], results[0]])
    expect(next.task()).toMatchObject({ status: 'completed' })
    // Only the result of the task itself is owed.
    expect(next.manager.registry.ledger.owed().map(({ record }) => record.id)).toEqual(['task'])
    expect(next.store.contents().deliveries).toEqual([])
  })

  it('F20: still belong to the run that starts again, when they have not ended or their results were not taken', async () => {
    let end: (value: string) => void = () => undefined
    const run = async ({ launch, children }: RunContext): Promise<unknown> => {
      launch({ subagentName: 'child', goalPrompt: 'look' }, () => new Promise<string>((resolve) => (end = resolve)))
      return (await children.waitFor()).settled.map((task) => [task.status, task.status === 'failed' && task.errorCode])
    }
    const first = durableProcess(run)
    await first.launch()
    end('late')
    const next = await first.next()
    // Its own run has died.
    expect(next.task()).toMatchObject({ output: { final_message: '[["failed","INTERRUPTED"]]' } })
  })
})

describe('releasesSlot', () => {
  const definition = { releasesSlot: true, maxConcurrent: 1 }

  it('F20: a run that waits gives back its slot, and takes one again however long the queue is', async () => {
    const order: string[] = []
    const first = durableProcess(
      async ({ sleep, taskId }) => {
        order.push(`${taskId} begins`)
        if (taskId === 'task') await sleep(1000)
        else await sleep(5000, { name: 'x' })
        order.push(`${taskId} goes on`)
        return 'done'
      },
      { definition, maxAsyncTasks: 1, whenFull: 'queue', queue: { max: 1, maxWaitMs: 10 } },
    )
    await first.launch()
    expect(first.manager.actor.getSnapshot()).toMatchObject({ slots: 0, running: 1 })
    let end: (value: string) => void = () => undefined
    const other = (): Promise<string> => new Promise((resolve) => (end = resolve))
    first.manager.launch({ id: 'other', subagentName: 'other', goalPrompt: 'x' }, other)
    first.manager.launch({ id: 'third', subagentName: 'other', goalPrompt: 'x', timeoutMs: 1 }, () => 'third')
    await settle()
    first.clock.advance(1000)
    await settle()
    // It waits for its slot, and is not failed for that.
    expect(order).toEqual(['task begins'])
    expect(first.manager.getTask('third')).toMatchObject({ status: 'failed', errorCode: 'QUEUE_TIMEOUT' })
    first.clock.advance(100_000)
    await settle()
    expect(first.task()).toMatchObject({ status: 'running' })
    end('x')
    await settle()
    expect(order).toEqual(['task begins', 'task goes on'])
    expect(first.task()).toMatchObject({ status: 'completed' })
    expect(first.manager.actor.getSnapshot()).toMatchObject({ slots: 0 })
    expect(first.clock.pending).toBe(0)
  })

  it('F20: gives back the slot of its subagent, and keeps its key', async () => {
    const begun: string[] = []
    const first = durableProcess(
      async ({ sleep, taskId }) => {
        begun.push(taskId)
        await sleep(1000)
        return 'done'
      },
      { definition },
    )
    await first.launch({ concurrencyKey: 'browser' })
    await first.launch({ id: 'same-key', concurrencyKey: 'browser' })
    await first.launch({ id: 'other' })
    expect(begun).toEqual(['task', 'other'])
    first.clock.advance(1000)
    await settle()
    first.clock.advance(1000)
    await settle()
    expect(begun).toEqual(['task', 'other', 'same-key'])
    expect(first.task()).toMatchObject({ status: 'completed' })
    expect(first.manager.getTask('same-key')).toMatchObject({ status: 'completed' })
    expect(first.manager.registry.limits.size).toBe(0)
  })

  it('F20: one that is cancelled while it waits, or waits for its slot, leaves nothing behind', async () => {
    const first = durableProcess(async ({ sleep }) => sleep(1000), { definition, maxAsyncTasks: 1, whenFull: 'queue' })
    await first.launch()
    await first.launch({ id: 'second' })
    first.manager.launch({ id: 'other', subagentName: 'other', goalPrompt: 'x' }, never)
    first.clock.advance(1000)
    await settle()
    expect(first.manager.registry.pools.task.queue.size).toBeGreaterThan(0)
    for (const id of ['task', 'second', 'other']) first.manager.cancelTask(id)
    await settle()
    first.clock.advance(1)
    await settle()
    expect(first.manager.actor.getSnapshot()).toMatchObject({ slots: 0, running: 0 })
    expect(first.manager.registry.pools.task.queue).toMatchObject({ size: 0, bytes: 0 })
    expect(first.manager.registry.limits.size).toBe(0)
    expect(first.clock.pending).toBe(0)
  })
})

describe('steps without a store', () => {
  it('keep their results for repeated runs of the process', async () => {
    let done = 0
    let runs = 0
    const manager = new AsyncTaskManager()
    manager.launch(
      {
        id: 'task',
        subagentName: 'agent',
        goalPrompt: 'work',
        retry: { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 0 } },
      },
      async (_input, { step }) => {
        await step('a', () => (done += 1))
        runs += 1
        if (runs === 1) throw Object.assign(new Error('busy'), { code: 'RATE_LIMITED' })
        return 'done'
      },
    )
    await manager.waitFor(['task'])
    expect(done).toBe(1)
    expect(manager.getTask('task')).toMatchObject({ status: 'completed', attempt: 2 })
    await manager.dispose()
  })

  it('durable is refused', async () => {
    const manager = new AsyncTaskManager()
    const launch = (definition: object) => () =>
      manager.launch({ subagentName: 'agent', goalPrompt: 'work' }, { run: () => 'x', ...definition })
    expect(launch({ durable: true })).toThrow('runner.durable: got true, expected false for a manager without a store.')
    expect(launch({ durable: true, survivesHost: true })).toThrow(/runner.durable/)
    expect(launch({ releasesSlot: true })).toThrow(/runner.releasesSlot/)
    await manager.dispose()
  })
})
