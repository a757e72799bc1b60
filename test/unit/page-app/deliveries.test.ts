/** Why results wait, and how far tasks have come, in words. */
import { describe, expect, it } from 'vitest'
import { waitingGroups, whyWaits } from '../../../src/page/app/text/deliveries.js'
import { ownerName, ownerText, taskOfRun } from '../../../src/page/app/text/owners.js'
import { progressOf } from '../../../src/page/app/text/progress.js'
import type { OwnerDelivery } from '../../../src/page/wire.js'
import { pageTask } from './page-tasks.js'

const owner = (more: Partial<OwnerDelivery> = {}): OwnerDelivery => ({
  owner: 'main',
  owed: 0,
  leased: 0,
  delivered: 0,
  state: 'idle',
  reason: '',
  messages: [],
  waiting: [],
  ...more,
})
const owed = pageTask({ delivery: 'owed', endedAt: 5 })

describe('why a result waits', () => {
  it('is a sentence for each state of its delivery', () => {
    const states = ['none', 'idle', 'gathering', 'busy', 'backing-off', 'delivering'] as const
    const reasons = states.map((state) => whyWaits(owed, owner({ state })))
    expect(new Set(reasons).size).toBe(states.length)
    for (const reason of reasons) expect(reason).toMatch(/^[A-Z].*[a-z]\.$/)
    expect(reasons[3]).toBe('Waits until the agent is idle.')
    expect(whyWaits(owed, owner({ state: 'backing-off', until: 0 }))).toMatch(/next attempt, at \d\d:\d\d:\d\d\.$/)
    expect(whyWaits({ ...owed, delivery: 'leased' }, owner())).toMatch(/^In a message/)
    expect(whyWaits({ ...owed, group: 'run:a' }, undefined)).toMatch(/the run that launched/)
    expect(whyWaits(owed, undefined)).toBe(whyWaits(owed, owner({ state: 'none' })))
    expect(whyWaits({ ...owed, delivery: 'delivered' }, owner())).toBeUndefined()
  })

  it('is said once for all results that have the same one, the longest first', () => {
    const tasks = [
      pageTask({ id: 'b', delivery: 'owed', endedAt: 20 }),
      pageTask({ id: 'l', delivery: 'leased', endedAt: 1 }),
      pageTask({ id: 'a', delivery: 'owed', endedAt: 10 }),
    ]
    const waiting = [...tasks.map(({ key }) => key), 'async:forgotten']
    const groups = waitingGroups(owner({ state: 'busy', waiting }), (key) => tasks.find((task) => task.key === key))
    expect(groups.map(({ tasks: members }) => members.map(({ id }) => id))).toEqual([['a', 'b'], ['l']])
  })
})

describe('how far a task has come', () => {
  const progress = { progress: 3, total: 12, message: 'Reading' }

  it('is said while it runs, and where it stopped when it has not completed', () => {
    expect(progressOf(pageTask({ progress }))).toEqual({ text: '25 % · Reading', part: 0.25 })
    expect(progressOf(pageTask({ progress, state: 'failed', endedAt: 9 }))?.text).toBe('stopped at 25 % · Reading')
    const all = { progress: 12, total: 12, message: 'Saving' }
    expect(progressOf(pageTask({ progress: all, state: 'failed', endedAt: 9 }))?.text).toBe(
      'had reported 100 % · Saving',
    )
    const most = { progress: 11.99, total: 12 }
    expect(progressOf(pageTask({ progress: most, state: 'cancelled', endedAt: 9 }))?.text).toBe('had reported 100 %')
    expect(progressOf(pageTask({ progress, state: 'completed', endedAt: 9 }))).toBeUndefined()
    expect(progressOf(pageTask({ progress, state: 'asking' }))).toBeUndefined()
    expect(progressOf(pageTask())).toBeUndefined()
  })

  it('of a command task is which command runs, and how far that is', () => {
    const commands = [
      { tool: 'add', state: 'completed' },
      { tool: 'slow', state: 'running' },
    ] as const
    const task = pageTask({ kind: 'command', commands, commandCount: 4 })
    expect(progressOf(task)).toEqual({ text: '2 of 4: slow', part: 0.25 })
    expect(progressOf({ ...task, progress: { progress: 1, total: 2 } })).toEqual({
      text: '2 of 4: slow · 50 %',
      part: 0.375,
    })
    expect(progressOf({ ...task, commands: commands.slice(1), commandCount: 1, progress })?.text).toBe('25 % · Reading')
  })
})

describe('the owner of a task', () => {
  it('is named by the task that launched it, while that owns it', () => {
    const parent = pageTask({ title: 'Plan' })
    expect(ownerText(pageTask(), parent)).toBe('main')
    expect(ownerText(pageTask({ group: 'run:a' }), parent)).toBe('the run of Plan')
    expect(ownerText(pageTask({ group: 'run:a' }), undefined)).toBe('the run that launched it')
    expect(ownerText(pageTask({ group: 'run:a', kind: 'command' }), parent)).toBe('run:a')
    expect([taskOfRun('run:a'), taskOfRun('main')]).toEqual(['async:a', undefined])
    expect([ownerName('run:a', parent), ownerName('run:a', undefined), ownerName('main', parent)]).toEqual([
      ...['The run of Plan', 'run:a', 'main'],
    ])
  })
})
