/** What the journal holds of ended tasks is its own, and is what it counts: G2. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, type Runner } from 'agent-tasks'
import { PageState } from '../../../src/page/page-state.js'

const MIB = 1024 * 1024

setFlagsFromString('--expose_gc')
const collect = runInNewContext('gc') as () => void

/** Runs one task after the other. */
function withTasks() {
  const manager = new AsyncTaskManager({ maxAsyncTasks: 1, onError: () => undefined })
  const state = new PageState({ manager, taskManager: undefined, maxTasks: 1000, maxBytes: 64 * MIB, now: () => 0 })
  onTestFinished(async () => {
    state.stop()
    await manager.dispose()
  })
  const run = async (input: Partial<Parameters<AsyncTaskManager['launch']>[0]>, runner: Runner): Promise<void> => {
    const { id } = manager.launch({ subagentName: 'helper', goalPrompt: 'x', ...input }, runner)
    await expect.poll(() => manager.getTask(id)?.status, { interval: 1 }).not.toBe('running')
    manager.markNotified(id)
  }
  return { state, run }
}

const heldBytes = (): number => {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

describe('the journal', () => {
  it('G2: holds no long text behind the beginning of it, and no value that a task returned', async () => {
    const manager = new AsyncTaskManager(1)
    const state = new PageState({ manager, taskManager: undefined, maxTasks: 1000, maxBytes: 64 * MIB, now: () => 0 })
    onTestFinished(() => state.stop())
    const part = (index: number): string =>
      Buffer.alloc(4 * MIB, 97 + index)
        .toString('latin1')
        .slice(1, 50)
    const refs: WeakRef<object>[] = []
    const before = heldBytes()
    for (let index = 0; index < 25; index += 1) {
      const id = `task-${index}`
      manager.registerTask({ id, subagentName: part(index), goalPrompt: part(index), owner: part(index) })
      if (index % 2 === 0) manager.failTask(id, part(index))
      else manager.completeTask(id, { part: part(index) })
      const output = manager.getTask(id)?.output
      if (output !== undefined) refs.push(new WeakRef(output))
      manager.markNotified(id)
      // So that the manager keeps no record for each of the owners.
      manager.releaseOwner(part(index))
    }
    for (let index = 0; index < 5; index += 1) {
      manager.registerTask({ id: `last-${index}`, subagentName: 'helper', goalPrompt: 'x', owner: 'last' })
      manager.cancelTask(`last-${index}`)
      manager.releaseOwner('last')
    }
    // What a WeakRef was made of lives until the next turn.
    await new Promise((resolve) => setTimeout(resolve, 1))
    expect(heldBytes() - before).toBeLessThan(50 * MIB)
    expect(refs.map((ref) => ref.deref())).toEqual(refs.map(() => undefined))
    expect(state.journal.size).toBe(30)
  })

  it('G2: counts errors, commands, names and children', async () => {
    const { state, run } = withTasks()
    const bytesOf = async (input: Parameters<typeof run>[0], runner: Runner): Promise<number> => {
      const before = state.journal.bytes
      await run(input, runner)
      return state.journal.bytes - before
    }
    const plain = await bytesOf({}, () => ({}))
    const text = 'x'.repeat(500)
    expect(await bytesOf({ kind: 'command', command: ['x', 'y'.repeat(10_000)] }, () => ({}))).toBeGreaterThan(
      plain + 10_000,
    )
    expect(await bytesOf({ owner: text }, () => ({}))).toBeGreaterThan(plain + 500)
    expect(
      await bytesOf({}, () => Promise.reject(Object.assign(new Error('漢'.repeat(5000)), { code: 'c'.repeat(5000) }))),
    ).toBeGreaterThan(plain + 15_000)
    await run({ id: 'parent' }, async (_input, context) => {
      for (let index = 0; index < 10; index += 1) {
        context.launch({ subagentName: 'child', goalPrompt: 'y', id: `${text}-${index}` }, () => ({}))
      }
      await context.children.waitFor()
      return {}
    })
    expect(state.journal.get('async:parent')?.heldBytes).toBeGreaterThan(10 * 500)
  })

  it('G2: has the beginning of a long goal, and room for what came of it', async () => {
    const { state, run } = withTasks()
    await run({ id: 'a', goalPrompt: 'x'.repeat(2 * MIB) }, () => ({ text: 'y'.repeat(MIB / 2) }))
    const entry = state.journal.get('async:a')
    if (entry?.kind !== 'async') throw new Error('there is no task')
    expect([entry.kept?.goal.text.length, entry.kept?.output?.isCut]).toEqual([MIB / 4, false])
  })

  it('G2: has of an error that is larger than what one task may keep its beginning', async () => {
    const { state, run } = withTasks()
    await run({ goalPrompt: '漢'.repeat(MIB) }, () => Promise.reject(new Error('漢'.repeat(MIB))))
    const [entry] = state.journal.newestFirst()
    if (entry?.kind !== 'async') throw new Error('there is no task')
    expect([entry.kept?.error?.text.length, entry.kept?.goal.isCut]).toEqual([20_000, true])
    expect(entry.heldBytes).toBeLessThanOrEqual(MIB)
  })
})
