import { expect, it } from 'vitest'
import { asyncTaskMachine } from '../../../machines/index.js'
import { isVisited, taskPath } from '../../../src/page/app/task-path.js'
import type { PageTaskState, TaskEvent } from '../../../src/page/wire.js'

const eventsOf = (...states: PageTaskState[]): TaskEvent[] => states.map((state, at) => ({ at, event: state, state }))

it('has the states in their order, each as often as it was entered', () => {
  const events = eventsOf('queued', 'running', 'asking', 'asking', 'running', 'completed')
  expect(taskPath({ kind: 'async', state: 'completed' }, events)).toEqual({
    machine: asyncTaskMachine.id,
    state: 'completed',
    visited: ['queued', 'running', 'asking', 'running', 'completed'],
    isCut: false,
  })
})

it('ends with the present state, also when its event has not been read yet', () => {
  expect(taskPath({ kind: 'command', state: 'running' }, eventsOf('queued')).visited).toEqual(['queued', 'running'])
})

it('takes a task that has timed out for a failed one, as its machine does', () => {
  const path = taskPath({ kind: 'async', state: 'timed-out' }, eventsOf('running', 'stopping', 'timed-out'))
  expect(path).toMatchObject({ state: 'failed', visited: ['running', 'stopping', 'failed'] })
})

it('says when the first states are no longer known', () => {
  expect(taskPath({ kind: 'async', state: 'asking' }, eventsOf('asking'))).toMatchObject({ isCut: true })
  expect(taskPath({ kind: 'async', state: 'queued' }, [])).toMatchObject({ visited: ['queued'], isCut: false })
})

it('knows the lines that the task has gone along, in their direction', () => {
  const path = taskPath({ kind: 'async', state: 'completed' }, eventsOf('running', 'asking', 'running', 'completed'))
  const line = (from: string, to: string) => isVisited(path, { from, to, points: [], labels: [] })
  expect([line('running', 'asking'), line('asking', 'running'), line('running', 'completed')]).toEqual([
    true,
    true,
    true,
  ])
  expect([line('asking', 'completed'), line('completed', 'running'), line('running', 'running')]).toEqual([
    false,
    false,
    false,
  ])
  expect(isVisited(path, { to: 'running', points: [], labels: [] })).toBe(false)
})
