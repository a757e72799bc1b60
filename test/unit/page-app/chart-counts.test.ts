import { expect, it } from 'vitest'
import { asyncTaskMachine, commandTaskMachine, deliveryMachine } from '../../../machines/index.js'
import { countStates, pathOf, summaryOf } from '../../../src/page/app/chart-counts.js'
import { arrowPath, linePath } from '../../../src/page/app/chart-lines.js'
import { tasksInState } from '../../../src/page/app/machines/tasks-in-state.js'
import { layOut } from '../../../scripts/chart-layout.js'
import { pageTask } from './page-tasks.js'

it('counts an actor in the states around its own, too', async () => {
  const chart = await layOut(deliveryMachine)
  const counts = countStates(chart, { delivery: { 'holding.polling': 2, 'holding.gathering.quiet': 1, dormant: 3 } })
  expect(Object.fromEntries(counts)).toMatchObject({
    holding: 3,
    'holding.polling': 2,
    'holding.gathering': 1,
    'holding.gathering.quiet': 1,
    'holding.waiting': 0,
    dormant: 3,
    detached: 0,
  })
  expect(summaryOf(chart, counts)).toBe('3 dormant, 1 holding.gathering.quiet, 2 holding.polling')
})

it('finds the states of tasks by their names alone', async () => {
  const chart = await layOut(asyncTaskMachine)
  const counts = countStates(chart, { asyncTask: { running: 2, stopping: 1, failed: 4 } })
  expect(Object.fromEntries(counts)).toMatchObject({
    active: 3,
    'active.queued': 0,
    'active.running': 2,
    'active.asking': 0,
    'active.wrapping': 0,
    'active.stopping': 1,
    completed: 0,
    failed: 4,
    cancelled: 0,
  })
  expect(summaryOf(chart, counts)).toBe('2 active.running, 1 active.stopping, 4 failed')
})

it('prefers a path to a name, and leaves what it does not know', async () => {
  const chart = await layOut(deliveryMachine)
  expect(['dormant', 'holding.polling', 'polling', 'gone'].map((state) => pathOf(chart, state))).toEqual([
    'dormant',
    'holding.polling',
    'holding.polling',
    'gone',
  ])
})

it('says that there is none', async () => {
  const chart = await layOut(deliveryMachine)
  expect(summaryOf(chart, countStates(chart, {}))).toBe('none')
})

it('draws a line with round corners up to its arrow', () => {
  const points = [
    { x: 0, y: 0 },
    { x: 0, y: 20 },
    { x: 40, y: 20 },
  ]
  expect(linePath(points)).toBe('M0 0L0 14Q0 20 6 20L33 20')
  expect(arrowPath(points)).toBe('M40 20L32 16L32 24Z')
})

it('finds the tasks that are in a state, or in one inside it', async () => {
  const tasks = [
    pageTask({ id: 'a', state: 'running' }),
    pageTask({ id: 'b', key: 'command:b', kind: 'command', state: 'running' }),
    pageTask({ id: 'c', state: 'asking' }),
    pageTask({ id: 'd', state: 'failed', endedAt: 1 }),
    pageTask({ id: 'e', state: 'timed-out', endedAt: 1 }),
  ]
  const [chart, commands, delivery] = await Promise.all(
    [asyncTaskMachine, commandTaskMachine, deliveryMachine].map((machine) => layOut(machine)),
  )
  const found = (in_: typeof chart, path: string) => tasksInState(in_!, path, tasks).map(({ id }) => id)
  expect(found(chart, 'active')).toEqual(['a', 'c'])
  expect(found(chart, 'active.running')).toEqual(['a'])
  expect(found(chart, 'failed')).toEqual(['d', 'e'])
  expect(found(commands, 'running')).toEqual(['b'])
  expect(found(delivery, 'dormant')).toEqual([])
})
