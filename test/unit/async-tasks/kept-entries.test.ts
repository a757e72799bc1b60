/** A task whose record was pruned is let go: nothing in the manager keeps it alive. */
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { AsyncTaskReminderService } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { forget } from '../../support/leftovers.js'
import { limitedTasks, tick } from '../../support/limited-tasks.js'

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
}

/** What XState and the promises of a test keep goes with the next turns; V8 may need more than one collection. */
async function isCollected(ref: WeakRef<object>): Promise<boolean> {
  for (let nth = 0; nth < 20; nth += 1) {
    collectGarbage()
    if (ref.deref() === undefined) return true
    await tick()
    await setImmediate()
  }
  return false
}

type Host = ReturnType<typeof limitedTasks>

const lives: Record<string, (host: Host, id: string) => Promise<void>> = {
  'completed, and was delivered': async ({ launch, manager, runs }, id) => {
    await launch(id)
    await runs.at(-1)?.end()
    manager.markNotified(id)
  },
  'has spent something of a budget': async ({ launch, manager, runs }, id) => {
    await launch(id, { budget: { tokens: 10 } })
    runs.at(-1)?.context.spend({ tokens: 5 })
    await runs.at(-1)?.end()
    manager.markNotified(id)
  },
  'was over its budget, and concluded': async ({ launch, manager, runs }, id) => {
    await launch(id, { budget: { tokens: 10 } })
    expect(runs.at(-1)?.context.wrapUp.aborted).toBe(false)
    runs.at(-1)?.context.spend({ tokens: 50 })
    await runs.at(-1)?.end()
    manager.markNotified(id)
  },
  'was registered with a controller, and cancelled': ({ manager }, id) => {
    manager.registerTask({ id, subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
    manager.cancelTask(id)
    return tick()
  },
  'asked, was answered, and got a message': async ({ launch, manager, runs }, id) => {
    await launch(id, {}, { takesMessages: true })
    const asked = runs.at(-1)?.context.ask('Which?')
    manager.answerTask(id, 'question-1', 'this')
    await asked
    expect(manager.sendToTask(id, 'hello')).toEqual({ sent: true })
    await runs.at(-1)?.end()
    manager.markNotified(id)
  },
  'was waited for, and its output followed': async ({ launch, manager, runs }, id) => {
    await launch(id)
    const subscription = manager.output$(id).subscribe(() => undefined)
    const left = manager.output$(id).subscribe(() => undefined)
    runs.at(-1)?.context.append('text')
    left.unsubscribe()
    const stop = new AbortController()
    const aborted = manager.waitFor([id], { signal: stop.signal })
    stop.abort()
    await aborted.catch(() => undefined)
    const waits = [manager.waitFor([id]), manager.waitFor([id])]
    await runs.at(-1)?.end()
    await Promise.all(waits)
    subscription.unsubscribe()
  },
  'was in messages that were refused and accepted late': async ({ launch, manager, runs }, id) => {
    await launch(id)
    await runs.at(-1)?.end()
    const first = manager.lease()
    first?.release()
    const second = manager.lease({ exclusive: true, owner: 'main' })
    first?.acknowledge()
    second?.release()
    await tick()
    expect(manager.getTask(id)?.delivery).toBe('delivered')
  },
  'was delivered in part, and read': async ({ launch, manager, runs }, id) => {
    await launch(id)
    await runs.at(-1)?.end('x'.repeat(50_000))
    new AsyncTaskReminderService(manager).leaseReminder()?.acknowledge()
    manager.registry.send({ type: 'text.read', taskId: id })
  },
  'waited for a slot, and was cancelled': async ({ launch, manager, runs }, id) => {
    await launch('before')
    await launch(id, { whenFull: 'queue' })
    manager.cancelTask(id)
    await runs.at(-1)?.end()
    manager.markNotified('before')
  },
  'waited for a slot, and ran': async ({ launch, manager, runs }, id) => {
    await launch('before')
    await launch(id, { whenFull: 'queue', context: { for: 'it' } })
    await runs.at(-1)?.end()
    await runs.at(-1)?.end()
    manager.markNotified('before')
    manager.markNotified(id)
  },
  'was run again': async ({ launch, manager, runs, pass }, id) => {
    await launch(id, { retry: { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 0 } } })
    const asked = runs.at(-1)?.context.ask('Which?')
    await runs.at(-1)?.fail(Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' }))
    await asked?.catch(() => undefined)
    await pass(0)
    await runs.at(-1)?.end()
    manager.markNotified(id)
  },
  'had children, and was listed': async ({ launch, manager, runs, runner }, id) => {
    await launch(id)
    const parent = runs.at(-1)
    parent?.context.launch({ id: 'child', subagentName: 's', goalPrompt: 'g' }, runner)
    await tick()
    const children = parent?.context.children.waitFor()
    new AsyncTaskReminderService(manager).generateStatusSummary()
    await runs.at(-1)?.end()
    await children
    await parent?.end()
    manager.markNotified(id)
  },
  'belonged to an owner that has gone': async ({ launch, manager, runs }, id) => {
    await launch(id, { owner: 'gone' })
    manager.releaseOwner('gone', { to: 'heir' })
    await runs.at(-1)?.end()
    manager.releaseOwner('heir')
  },
}

it.each(
  Object.entries(lives).flatMap(([name, live]) => [
    [name, 'without a store', live] as const,
    [name, 'with a store', live] as const,
  ]),
)('A7: one that %s (%s)', async (_name, store, live) => {
  const host = limitedTasks(store === 'with a store' ? { store: memoryStore() } : {})
  const { manager } = host
  const watched = await (async () => {
    await live(host, 'watched')
    await tick()
    const entry = manager.registry.history.get('watched')
    if (entry === undefined) throw new Error('it was pruned too early')
    return new WeakRef(entry)
  })()
  // The next messages confirm the last one, and take its place; what only the latest of its kind keeps goes with them.
  for (let nth = 0; nth < 8; nth += 1) {
    await host.launch(`next-${nth}`, { budget: { tokens: 1 } })
    await host.runs.at(-1)?.end()
    manager.lease()?.acknowledge()
    // Released owners share the room of one owner.
    await host.launch(`released-${nth}`, { owner: `owner-${nth}` })
    await host.runs.at(-1)?.end()
    manager.releaseOwner(`owner-${nth}`)
    await tick()
  }
  expect(manager.getTask('watched')).toBeUndefined()
  host.runs.splice(0)
  // What the checks of leftovers have recorded would keep it alive.
  forget()
  expect(await isCollected(watched)).toBe(true)
})

it('A7: what was kept of a task goes with its record, also for those that hold a handle of it', async () => {
  const { launch, manager, runs } = limitedTasks()
  await launch('a')
  const entry = manager.registry.history.get('a')
  runs[0]?.context.append('text')
  await runs[0]?.end()
  manager.markNotified('a')
  expect(entry?.data?.size).toBeGreaterThan(0)
  manager.setMaxAsyncTasks(0)
  expect(manager.getTask('a')).toBeUndefined()
  expect(entry?.data).toBeUndefined()
})

it.each(['without a store', 'with a store'])('A7: a record that is kept lets go of its run (%s)', async (store) => {
  const { launch, manager, runs } = limitedTasks(store === 'with a store' ? { store: memoryStore() } : {})
  const context = await (async () => {
    await launch('a')
    const [run] = runs.splice(0)
    if (run === undefined) expect.unreachable()
    await run.end()
    manager.lease()?.acknowledge()
    return new WeakRef(run.context)
  })()
  forget()
  expect(await isCollected(context)).toBe(true)
  expect(manager.getTask('a')?.delivery).toBe('delivered')
  expect(manager.registry.history.get('a')?.lease).toBeUndefined()
})
