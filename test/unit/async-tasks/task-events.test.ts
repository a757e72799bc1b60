/** Who is notified of what: from which change on, and until when. */
import type { Observable } from 'rxjs'
import { expect, it } from 'vitest'
import type { OwnerCounts } from '../../../src/async-tasks/task-events.js'
import { AsyncTaskManager } from '../../../src/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { countVisits } from '../../support/visits.js'

function setUp() {
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock: createManualClock(1_000) })
  const register = (id: string, owner = 'main') =>
    manager.registerTask({ id, owner, subagentName: 'agent', goalPrompt: 'goal' })
  return { manager, register }
}

it('A2: a handler that is added by a subscriber who is notified of an end hears of later ends only', () => {
  const { manager, register } = setUp()
  const heard: string[] = []
  let isAdded = false
  manager.settled$.subscribe(() => {
    if (!isAdded) manager.onTaskCompleted(({ id }) => heard.push(id))
    isAdded = true
  })
  for (const id of ['a', 'b']) {
    register(id)
    manager.completeTask(id, {})
  }
  expect(heard).toEqual(['b'])
})

it('A2: a handler that an earlier one has removed is not called, nor any after dispose', async () => {
  const { manager, register } = setUp()
  const heard: string[] = []
  manager.onTaskCompleted(() => remove())
  const remove = manager.onTaskCompleted(({ id }) => heard.push(`removed ${id}`))
  manager.onTaskCompleted(() => void manager.dispose())
  manager.onTaskCompleted(({ id }) => heard.push(`later ${id}`))
  register('a')
  manager.completeTask('a', {})
  await manager.dispose()
  expect(heard).toEqual([])
  manager.onTaskCompleted(({ id }) => heard.push(`late ${id}`))()
})

it('the counts start with those of the moment, and follow each change once, also back to what they were', () => {
  const { manager, register } = setUp()
  register('before')
  const seen: string[] = []
  const text = (counts: OwnerCounts) => Array.from(counts, ([owner, count]) => `${owner} ${count}`).join(', ')
  manager.running$.subscribe((counts) => seen.push(`running: ${text(counts)}`))
  manager.owed$.subscribe((counts) => seen.push(`owed: ${text(counts)}`))
  expect(seen.splice(0)).toEqual(['running: main 1', 'owed: '])
  register('a', 'other')
  expect(seen.splice(0)).toEqual(['running: main 1, other 1'])
  manager.completeTask('a', {})
  expect(seen.splice(0)).toEqual(['running: main 1', 'owed: other 1'])
  const lease = manager.lease({ owner: 'other' })
  expect(seen.splice(0)).toEqual(['owed: '])
  lease?.release()
  expect(seen.splice(0)).toEqual(['owed: other 1'])
  manager.releaseOwner('other', { to: 'main' })
  expect(seen.splice(0)).toEqual(['owed: main 1'])
})

it('A2: a subscriber of counts that changes them when it subscribes is told of the change', () => {
  const { manager, register } = setUp()
  const seen: number[] = []
  manager.running$.subscribe((counts) => {
    seen.push(counts.get('main') ?? 0)
    if (seen.length === 1) register('a')
  })
  expect(seen).toEqual([0, 1])
})

it('A9: every stream completes on dispose, and at once for those who come later', async () => {
  const { manager } = setUp()
  const streams = {
    transitions: manager.transitions$,
    settled: manager.settled$,
    owed: manager.owed$,
    running: manager.running$,
    progress: manager.progress$,
    questions: manager.questions$,
  }
  const complete: string[] = []
  const subscribe = (when: string): void => {
    for (const [name, stream] of Object.entries(streams)) {
      ;(stream as Observable<unknown>).subscribe({ complete: () => complete.push(`${when} ${name}`) })
    }
  }
  subscribe('early')
  await manager.dispose()
  const names = Object.keys(streams)
  expect(complete.splice(0).sort()).toEqual(names.map((name) => `early ${name}`).sort())
  subscribe('late')
  expect(complete).toEqual(names.map((name) => `late ${name}`))
})

it('A9: what is not subscribed any more costs nothing', () => {
  const { manager, register } = setUp()
  register('a')
  let nth = 0
  const work = (): void => {
    nth += 1
    manager.reportProgress('a', nth)
    manager.appendOutput('a', 'text')
    register(`t${nth}`)
    manager.cancelTask(`t${nth}`)
  }
  for (let round = 0; round < 12; round += 1) work()
  const before = countVisits(work)
  for (let round = 0; round < 20; round += 1) {
    const ends = [manager.progress$, manager.transitions$, manager.owed$, manager.questions$, manager.output$('a')].map(
      (stream) => (stream as Observable<unknown>).subscribe(() => undefined),
    )
    const removals = [manager.onTaskCancelled(() => undefined), manager.onTaskFailed(() => undefined)]
    for (const end of ends) end.unsubscribe()
    for (const remove of removals) remove()
  }
  expect(countVisits(work)).toBe(before)
})
