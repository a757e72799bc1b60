/**
 * A registry that is restored from its records owes what it owed, in the same order, has failed the tasks that ran, and continues from
 * there (A5, A7, A8), whether or not the records went through JSON.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { AsyncTaskInfo } from '../../machines/records.js'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { RestorableRecord } from '../../src/protocol/record-fields.js'
import { createManualClock } from '../../src/testing/manual-clock.js'

const NOW = 5000
const OWNERS = ['main', 'sub'] as const
const LOST = `The process that ran this task (subagent 'agent', goal "") ended before the task did. Launch it again if its result is still needed.`

type Kept = Omit<RestorableRecord, 'seq' | 'owner'> & { readonly seq: number; readonly owner: string }

const endings = fc.oneof(
  fc.record({
    status: fc.constant('completed' as const),
    output: fc.constantFrom({}, { emitted_vars: { deep: [1] } }),
  }),
  fc.record({ status: fc.constant('failed' as const), error: fc.constantFrom('', 'broken') }),
  fc.record({ status: fc.constant('cancelled' as const) }),
)
const deliveries = fc.oneof(
  fc.record({ delivery: fc.constantFrom('none' as const, 'owed' as const, 'leased' as const) }),
  fc.record({ delivery: fc.constant('delivered' as const), notifiedAt: fc.constant(4000) }),
)
const states = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(endings, deliveries).map(([a, b]) => ({ ...a, ...b, completedAt: 3000 })) },
  { weight: 1, arbitrary: fc.constant({ status: 'running' as const, delivery: 'none' as const }) },
)
const extras = fc.oneof(fc.constant({}), fc.constant({ timeoutMs: 5, progress: { progress: 1, message: 'half' } }))
const records = fc
  .array(fc.tuple(states, extras, fc.constantFrom(...OWNERS)), { maxLength: 14 })
  .chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray([...all.keys()], { minLength: all.length })))
  .map(([all, seqs]) =>
    all.map(([state, extra, owner], n): Kept => {
      const fields = { id: `t${n}`, subagentName: 'agent', goalPrompt: '', launchedAt: 1000, seq: 10 * (seqs[n]! + 1) }
      return { ...fields, owner, ...state, ...extra }
    }),
  )

export const restoreProperty = () =>
  fc.property(records, fc.constantFrom(-1, 0, 1, 3), fc.boolean(), (given, max, isThroughJson) => {
    const input = isThroughJson ? (JSON.parse(JSON.stringify(given)) as Kept[]) : given
    const manager = AsyncTaskManager.restore(input, { maxAsyncTasks: max, clock: createManualClock(NOW) })
    const expected = expectedOf(given, max === -1 ? 10 : 2 * max)
    const all = manager.getAllTasks()
    for (const record of all) assertFrozen(record)
    assert.deepStrictEqual(all, expected)
    const owed = expected.filter(({ delivery }) => delivery === 'owed').map(({ id }) => id)
    assert.deepStrictEqual(
      manager.getPendingNotifications().map(({ id }) => id),
      owed,
    )
    assert.deepStrictEqual(manager.getRunningTasks(), [])
    checkContinues(manager, owed)
  })

type Expected = { readonly id: string; readonly owner: string; readonly delivery?: string | undefined }

function expectedOf(given: readonly Kept[], limit: number): Expected[] {
  const ended = given.filter(({ status }) => status !== 'running').sort((a, b) => a.seq - b.seq)
  let seq = Math.max(0, ...given.map((record) => record.seq))
  const lost = given.filter(({ status }) => status === 'running')
  const all: Expected[] = [
    ...ended.map((record) => ({ ...record, delivery: record.delivery === 'leased' ? 'owed' : record.delivery })),
    ...lost.map((record) => ({
      ...record,
      status: 'failed',
      error: LOST,
      errorCode: 'INTERRUPTED',
      delivery: 'owed',
      completedAt: NOW,
      seq: ++seq,
    })),
  ]
  const clear = all.filter(({ delivery }) => delivery !== 'owed')
  const ofOwner = (of: string): Expected[] => clear.filter(({ owner }) => owner === of)
  const pruned = new Set(
    clear.flatMap(({ owner }) => ofOwner(owner).slice(0, Math.max(0, ofOwner(owner).length - limit))),
  )
  return all.filter((record) => !pruned.has(record))
}

/** Restored tasks are delivered and pruned as others, and new changes have higher numbers. */
function checkContinues(manager: AsyncTaskManager, owed: readonly string[]): void {
  const highest = Math.max(0, ...manager.getAllTasks().map(({ seq }) => seq))
  const seqs: number[] = []
  manager.transitions$.subscribe(({ seq }) => seqs.push(seq))
  const lease = manager.lease()
  assert.deepStrictEqual(lease?.tasks.map(({ id }) => id) ?? [], owed)
  lease?.acknowledge()
  const { seq } = manager.registerTask({ id: 'new', subagentName: 'agent', goalPrompt: '' })
  assert.ok(seq > highest)
  assert.ok(manager.completeTask('new', {}))
  assert.deepStrictEqual(
    manager.getPendingNotifications().map(({ id }) => id),
    ['new'],
  )
  const limit = manager.getMaxAsyncTasks() === -1 ? 10 : 2 * manager.getMaxAsyncTasks()
  for (const owner of OWNERS) {
    assert.ok(manager.getAllTasks().filter((task) => task.owner === owner).length <= limit + 1, owner)
  }
  assert.deepStrictEqual(
    seqs,
    [...seqs].sort((a, b) => a - b),
  )
  assert.equal(new Set(seqs).size, seqs.length)
}

function assertFrozen(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  assert.ok(Object.isFrozen(value), 'A8: a restored record is not frozen')
  for (const inner of Object.values(value as AsyncTaskInfo)) assertFrozen(inner)
}
