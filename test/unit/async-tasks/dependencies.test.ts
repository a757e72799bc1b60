/** Tasks that run after others: F15. */
import { describe, expect, it } from 'vitest'
import type { RunInput } from '../../../src/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'
import { InvalidInputError, TaskLimitError } from '../../../src/errors.js'
import type { LaunchTaskInput } from '../../../src/protocol/async-tasks.js'

const roomy = { maxAsyncTasks: 4 } as const

/** A manager whose tasks a test ends one by one, and the input of each run. */
function dependentTasks(options: Parameters<typeof limitedTasks>[0] = roomy) {
  const tasks = limitedTasks(options)
  const inputs: RunInput[] = []
  const launch = (id: string, input: Partial<LaunchTaskInput> = {}) =>
    tasks.launch(id, input, {
      run: (given, context) => {
        inputs.push(given)
        return tasks.runner(given, context)
      },
    })
  const run = (id: string) => {
    const found = tasks.runs.findLast((started) => started.id === id)
    if (found === undefined) throw new Error(`${id} has not started.`)
    return found
  }
  /** What nothing may be left of when everything has ended. */
  const left = () => {
    const { pools } = tasks.manager.registry
    return {
      slots: tasks.manager.actor.getSnapshot().slots,
      queued: pools.task.queue.size,
      bytes: pools.task.queue.bytes,
    }
  }
  return { ...tasks, launch, run, inputs, left, get: (id: string) => tasks.manager.getTask(id) }
}

const NOTHING_LEFT = { slots: 0, queued: 0, bytes: 0 }

describe('a task that runs after others', () => {
  it('F15: is queued without a slot, also while one is free, until all of them have ended', async () => {
    const { launch, run, started, get, left, manager } = dependentTasks()
    await launch('a')
    await launch('b')
    const record = await launch('c', { after: ['a', 'b', 'a'], whenFull: 'refuse' })
    expect(record).toMatchObject({ status: 'queued', after: ['a', 'b'], waitsFor: ['a', 'b'] })
    expect(left()).toMatchObject({ slots: 2, queued: 1 })
    expect(manager.queuePosition('c')).toBeUndefined()
    await run('a').end()
    expect(get('c')).toMatchObject({ status: 'queued', waitsFor: ['b'] })
    expect(started()).toEqual(['a', 'b'])
    await run('b').end()
    expect(started()).toEqual(['a', 'b', 'c'])
    expect(get('c')).toMatchObject({ status: 'running', after: ['a', 'b'] })
    expect(get('c')).not.toHaveProperty('waitsFor')
    await run('c').end()
    expect(get('c')).toMatchObject({ status: 'completed', after: ['a', 'b'] })
    expect(left()).toEqual(NOTHING_LEFT)
  })

  it('F15: gets how each of them ended, in the order in which they were named, also in its next run', async () => {
    const { launch, run, inputs, manager } = dependentTasks()
    await launch('a')
    await launch('b')
    await launch('c')
    await launch('d', {
      after: ['c', 'a', 'b'],
      onFailedDependency: 'run',
      retry: { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 0 } },
    })
    await run('a').end('found it')
    await run('b').fail(Object.assign(new Error('no luck'), { code: 'NO_LUCK' }))
    manager.cancelTask('c', 'not needed')
    await tick()
    const results = {
      c: { status: 'cancelled', cancelReason: 'not needed' },
      a: { status: 'completed', output: { final_message: 'found it' } },
      b: { status: 'failed', error: 'no luck', errorCode: 'NO_LUCK' },
    }
    expect(inputs.at(-1)).toEqual({ id: 'd', subagent: 'agent', goal: 'goal of d', results })
    expect(Object.keys(inputs.at(-1)?.results ?? {})).toEqual(['c', 'a', 'b'])
    await run('d').fail(Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' }))
    await tick()
    expect(inputs.at(-1)).toMatchObject({ id: 'd', results })
    expect(inputs).toHaveLength(5)
    expect(inputs[0]).not.toHaveProperty('results')
  })

  it('F15: gets results that are together about as long as a message, and says which were cut', async () => {
    const { launch, run, inputs } = dependentTasks({ maxAsyncTasks: -1 })
    const ids = Array.from({ length: 100 }, (_, n) => `t${n}`)
    for (const id of ids) await launch(id)
    await launch('all', { after: ids })
    await launch('one', { after: ['t0'] })
    for (const id of ids) await run(id).end('word '.repeat(5_000))
    const all = inputs.find(({ id }) => id === 'all')?.results ?? {}
    expect(Object.values(all).every(({ isCut }) => isCut)).toBe(true)
    expect(JSON.stringify(all).length).toBeLessThan(80_000)
    expect(inputs.find(({ id }) => id === 'one')?.results?.['t0']?.output?.final_message).toMatch(/Read the rest with/)
  })

  it('F15: starts at once when they have ended before its launch', async () => {
    const { launch, run, inputs, get, left } = dependentTasks()
    await launch('a')
    await run('a').end('early')
    const record = await launch('b', { after: ['a'] })
    expect(record).toMatchObject({ status: 'running', after: ['a'] })
    expect(inputs.at(-1)?.results).toEqual({ a: { status: 'completed', output: { final_message: 'early' } } })
    await run('b').end()
    expect([get('b')?.status, left()]).toEqual(['completed', NOTHING_LEFT])
  })

  it('F15: waits for a slot like any other when they have ended, and its longest wait begins then', async () => {
    const { launch, run, pass, get, manager, left } = dependentTasks({ maxAsyncTasks: 2, queue: { maxWaitMs: 1_000 } })
    await launch('a')
    await launch('b')
    await launch('c', { after: ['a'] })
    await pass(5_000)
    expect(get('c')?.status).toBe('queued')
    await launch('d', { whenFull: 'queue', priority: 1 })
    await run('a').end()
    // The slot of `a` goes to `d`, which goes first: `c` waits for one as of now.
    expect(get('d')?.status).toBe('running')
    expect(get('c')).toMatchObject({ status: 'queued' })
    expect(get('c')).not.toHaveProperty('waitsFor')
    expect(manager.queuePosition('c')).toBe(1)
    await pass(999)
    expect(get('c')?.status).toBe('queued')
    await pass(1)
    expect(get('c')).toMatchObject({ status: 'failed', errorCode: 'QUEUE_TIMEOUT' })
    expect(left()).toMatchObject({ slots: 2, queued: 0, bytes: 0 })
  })

  it('F15: is refused when the queue is full, with nothing changed', async () => {
    const { launch, run, manager, left } = dependentTasks({ ...roomy, queue: { max: 1 } })
    await launch('a')
    await launch('b', { after: ['a'] })
    const before = left()
    await expect(launch('c', { after: ['a'] })).rejects.toThrow(TaskLimitError)
    expect(left()).toEqual(before)
    expect(manager.getTask('c')).toBeUndefined()
    await run('a').end()
    await run('b').end()
    expect(left()).toEqual(NOTHING_LEFT)
    const narrow = dependentTasks({ ...roomy, queue: { maxBytes: 100 } })
    await narrow.launch('a')
    await expect(narrow.launch('b', { after: ['a'], goalPrompt: 'x'.repeat(200) })).rejects.toThrow(TaskLimitError)
    expect(narrow.left()).toMatchObject({ queued: 0, bytes: 0 })
  })

  it('F15: uses no reservation that was made for it', async () => {
    const { launch, manager, run, left } = dependentTasks({ maxAsyncTasks: 2 })
    await launch('a')
    const reservation = manager.tryReserveAsyncSlot() ?? undefined
    expect(reservation).toBeDefined()
    manager.launch({ id: 'b', subagentName: 's', goalPrompt: 'g', after: ['a'] }, untilAborted, reservation)
    expect(manager.actor.getSnapshot()).toMatchObject({ slots: 1, reservations: 0 })
    await run('a').end()
    manager.cancelTask('b')
    await tick()
    expect(left()).toEqual(NOTHING_LEFT)
  })

  it('F15: leaves no place, no bytes and no hold when it is cancelled', async () => {
    const { launch, run, manager, left, started } = dependentTasks()
    await launch('a')
    await launch('b', { after: ['a'] })
    expect(manager.cancelTask('b')).toBe(true)
    expect(left()).toEqual({ slots: 1, queued: 0, bytes: 0 })
    await run('a').end()
    expect([started(), left()]).toEqual([['a'], NOTHING_LEFT])
  })

  it('F15: may wait for a task that waits itself', async () => {
    const { launch, run, started } = dependentTasks()
    await launch('a')
    await launch('b', { after: ['a'] })
    await launch('c', { after: ['b'], priority: 5 })
    await run('a').end()
    expect(started()).toEqual(['a', 'b'])
    await run('b').end()
    expect(started()).toEqual(['a', 'b', 'c'])
  })

  it('F15: waits for a task that the host runs, and takes the slot that this frees before a task of a lower priority', async () => {
    const { launch, manager, started } = dependentTasks({ maxAsyncTasks: 1, whenFull: 'queue' })
    manager.registerTask({ id: 'a', subagentName: 'host', goalPrompt: 'g' })
    await launch('b')
    await launch('c', { after: ['a'], priority: 1 })
    expect(started()).toEqual([])
    manager.completeTask('a', {})
    await tick()
    expect(started()).toEqual(['c'])
  })
})

describe('a task that waits for one that fails', () => {
  it('F15: fails at the first failure, with a code and the id, and does not run', async () => {
    const { launch, run, get, started, left } = dependentTasks()
    await launch('a')
    await launch('b')
    await launch('c', { after: ['a', 'b'] })
    await run('b').fail(new Error('no luck'))
    expect(get('c')).toMatchObject({ status: 'failed', errorCode: 'DEPENDENCY_FAILED', delivery: 'owed' })
    expect(get('c')?.error).toMatch(
      /task b \(subagent 'agent', goal "goal of b"\), which had to end first, has failed: no luck/,
    )
    await run('a').end()
    expect([started(), left()]).toEqual([['a', 'b'], NOTHING_LEFT])
  })

  it('F15: fails when it was cancelled, and so do those that wait for it', async () => {
    const { launch, manager, get, left } = dependentTasks()
    await launch('a')
    await launch('b', { after: ['a'] })
    await launch('c', { after: ['b'] })
    manager.cancelTask('a')
    await tick()
    expect(get('b')).toMatchObject({ status: 'failed', errorCode: 'DEPENDENCY_FAILED' })
    expect(get('b')?.error).toMatch(/was cancelled\.$/)
    expect(get('c')).toMatchObject({ status: 'failed', errorCode: 'DEPENDENCY_FAILED' })
    expect(left()).toEqual(NOTHING_LEFT)
  })

  it('F15: fails when it had failed before the launch', async () => {
    const { launch, run, get, left } = dependentTasks()
    await launch('a')
    await run('a').fail(new Error('no luck'))
    await launch('b', { after: ['a'] })
    expect(get('b')).toMatchObject({ status: 'failed', errorCode: 'DEPENDENCY_FAILED' })
    expect(left()).toEqual(NOTHING_LEFT)
  })

  it('F15: runs all the same with onFailedDependency: run, when all have ended', async () => {
    const { launch, run, started, inputs } = dependentTasks()
    await launch('a')
    await launch('b')
    await launch('c', { after: ['a', 'b'], onFailedDependency: 'run' })
    await run('a').fail(new Error('no luck'))
    expect(started()).toEqual(['a', 'b'])
    await run('b').end()
    expect(started()).toEqual(['a', 'b', 'c'])
    expect(inputs.at(-1)?.results).toMatchObject({ a: { status: 'failed' }, b: { status: 'completed' } })
  })

  it('F15: is cancelled, and does not fail, when both are cancelled together', async () => {
    const { launch, manager, get, left } = dependentTasks()
    await launch('a')
    await launch('b', { after: ['a'] })
    await launch('c', { after: ['b'] })
    expect(manager.cancelAll().sort()).toEqual(['a', 'b', 'c'])
    await tick()
    expect(['b', 'c'].map((id) => get(id)?.status)).toEqual(['cancelled', 'cancelled'])
    expect(left()).toEqual(NOTHING_LEFT)
    const disposed = dependentTasks()
    await disposed.launch('a')
    await disposed.launch('b', { after: ['a'] })
    await disposed.launch('c', { after: ['b'] })
    await disposed.manager.dispose()
    expect(['b', 'c'].map((id) => disposed.get(id)?.status)).toEqual(['cancelled', 'cancelled'])
  })
})

describe('a launch that names tasks', () => {
  const refusal = (launch: () => unknown): string => {
    try {
      launch()
    } catch (error) {
      if (error instanceof InvalidInputError) return error.message
      throw error
    }
    return 'not refused'
  }

  it('F15: is refused by name for a task that is unknown, pruned, of another owner, or itself, with nothing changed', async () => {
    const { launch, run, manager, left } = dependentTasks({ maxAsyncTasks: 1 })
    const of = (after: readonly string[], more: Partial<LaunchTaskInput> = {}) =>
      refusal(() => manager.launch({ id: 'new', subagentName: 's', goalPrompt: 'g', after, ...more }, untilAborted))
    for (const id of ['p', 'q', 'r']) {
      await launch(id)
      await run(id).end()
      manager.markNotified(id)
    }
    await launch('a')
    const before = [left(), manager.getAllTasks().length]
    expect(of(['a', 'x'])).toBe('input.after[1]: got "x", expected the id of a task that is kept; no task has this id.')
    expect(of(['p'])).toMatch(/^input\.after\[0\]: got "p", expected the id of a task that is kept; .* pruned at 1970-/)
    expect(of(['a'], { owner: 'other' })).toBe(
      'input.after[0]: got "a", expected the id of a task of owner "other"; this one belongs to another owner.',
    )
    expect(of(['new'])).toBe('input.after[0]: got "new", expected the id of a task other than the new one.')
    expect(of(Array.from({ length: 101 }, (_, n) => `t${n}`))).toMatch(/^input\.after: got .*100/)
    expect(of(['a'], { isForeground: true })).toMatch(/^input\.after: got .*expected nothing for a foreground task/)
    expect([left(), manager.getAllTasks().length]).toEqual(before)
    expect(manager.getTask('new')).toBeUndefined()
  })

  it('F15: is refused for a task above it, and may name another child of the same run', async () => {
    const { launch, run, get, manager } = dependentTasks()
    await launch('top')
    await launch('other')
    const { context } = run('top')
    const child = (id: string, after: readonly string[] = []) =>
      context.launch({ id, subagentName: 's', goalPrompt: 'g', after }, untilAborted)
    child('first')
    expect(refusal(() => child('second', ['top']))).toMatch(
      /^input\.after\[0\]: got "top", expected the id of a task other than the parent/,
    )
    expect(refusal(() => child('second', ['other']))).toMatch(/belongs to another owner\.$/)
    expect(child('second', ['first'])).toMatchObject({ status: 'queued', waitsFor: ['first'] })
    // The owner of the whole family sees its members.
    await launch('last', { after: ['second'] })
    manager.cancelTask('first')
    await tick()
    expect([get('second')?.status, get('last')?.status]).toEqual(['failed', 'failed'])
  })
})

describe('the record of a task that another one waits for', () => {
  it('F15: is kept while something waits that names it, and may be pruned afterwards', async () => {
    const { launch, run, get, manager } = dependentTasks({ maxAsyncTasks: 1, queue: { max: 10 }, whenFull: 'queue' })
    const finish = async (id: string) => {
      await run(id).end()
      manager.markNotified(id)
      await tick()
    }
    await launch('a')
    await launch('b')
    await launch('c', { after: ['a', 'b'] })
    await finish('a')
    for (let n = 0; n < 5; n += 1) await launch(`x${n}`, { priority: 1 })
    await finish('b')
    // They were next: `c` still waits for a slot, and its dependencies have ended.
    for (let n = 0; n < 4; n += 1) await finish(`x${n}`)
    expect([get('a')?.status, get('b')?.status, get('x0')]).toEqual(['completed', 'completed', undefined])
    await finish('x4')
    expect(get('c')?.status).toBe('running')
    await launch('y')
    await finish('c')
    await finish('y')
    expect(manager.getAllTasks().map(({ id }) => id)).toEqual(['c', 'y'])
  })

  it('F15: is kept when it could have been pruned before it was named', async () => {
    const { launch, run, get, manager } = dependentTasks({ maxAsyncTasks: 1, queue: { max: 10 }, whenFull: 'queue' })
    for (const id of ['a', 'b']) {
      await launch(id)
      await run(id).end()
      manager.markNotified(id)
    }
    await launch('long')
    await launch('c', { after: ['a', 'long'] })
    for (const id of ['d', 'e', 'f']) manager.registerTask({ id, subagentName: 's', goalPrompt: 'g' })
    for (const id of ['d', 'e', 'f']) {
      manager.completeTask(id, {})
      manager.markNotified(id)
    }
    expect(manager.getAllTasks().map(({ id }) => id)).toEqual(['a', 'long', 'c', 'e', 'f'])
    manager.cancelTask('c')
    await tick()
    expect(get('a')).toBeUndefined()
  })
})
