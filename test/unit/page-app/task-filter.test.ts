/** The filter of the table, and its place in the address. */
import { describe, expect, it } from 'vitest'
import { choicesOf, filterTasks, readFilter } from '../../../src/page/app/tasks/task-filter.js'
import { pageTask } from './page-tasks.js'

const tasks = [
  pageTask({
    id: 'd',
    title: 'Zebra',
    kind: 'command',
    key: 'command:d',
    group: 'desk',
    createdAt: 4,
    state: 'queued',
  }),
  pageTask({
    id: 'c',
    title: 'Apple',
    subagent: 'writer',
    createdAt: 3,
    endedAt: 50,
    state: 'failed',
    error: 'No Ladder',
  }),
  pageTask({ id: 'b', title: 'Pear', subagent: 'painter', group: 'other', createdAt: 2, state: 'timed-out' }),
  pageTask({ id: 'a', title: 'Apple tart', group: 'desk', createdAt: 1, endedAt: 5, state: 'completed' }),
]
const found = (query: string): string =>
  filterTasks(tasks, readFilter(new URLSearchParams(query)), 100)
    .map(({ id }) => id)
    .join('')

describe('the filter of tasks', () => {
  it.each([
    ['', 'dcba'],
    ['text=apple', 'ca'],
    ['text=LADDER apple', 'c'],
    ['text=writer', 'c'],
    ['text=other', 'b'],
    ['state=failed,timed-out', 'cb'],
    ['state=unheard', 'dcba'],
    ['owner=desk', 'a'],
    ['instance=desk', 'd'],
    ['subagent=painter', 'b'],
    ['subagent=nobody', ''],
    ['state=failed&text=pear', ''],
    ['sort=created', 'abcd'],
    ['sort=title', 'cabd'],
    ['sort=-title', 'dbac'],
    ['sort=state', 'dacb'],
    ['sort=-duration', 'bdca'],
    ['sort=group', 'dacb'],
    ['sort=subagent', 'dabc'],
    ['sort=unheard', 'dcba'],
  ])('%s finds %s', (query, ids) => {
    expect(found(query)).toBe(ids)
  })

  it('leaves the list as it was', () => {
    const before = [...tasks]
    found('sort=title')
    found('sort=created')
    expect(tasks).toEqual(before)
  })

  it('offers what there is', () => {
    const { states, owners, instances, subagents } = choicesOf(tasks, readFilter(new URLSearchParams()))
    expect(Object.fromEntries(states)).toEqual({ queued: 1, failed: 1, 'timed-out': 1, completed: 1 })
    expect([owners, instances, subagents]).toEqual([['desk', 'main', 'other'], ['desk'], ['painter', 'writer']])
  })

  it('counts for each state what the rest of the filter leaves', () => {
    const { states } = choicesOf(tasks, readFilter(new URLSearchParams('text=apple&state=queued')))
    expect(Object.fromEntries(states)).toEqual({ queued: 0, failed: 1, 'timed-out': 0, completed: 1 })
  })
})
