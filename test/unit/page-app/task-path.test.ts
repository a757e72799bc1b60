import { describe, expect, it } from 'vitest'
import { asyncTaskMachine, commandTaskMachine } from '../../../machines/index.js'
import { onChart, pathText, takenEdges, taskPath } from '../../../src/page/app/task-path.js'
import { layOut } from '../../../scripts/chart-layout.js'
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

it('has the paths of the states in the drawing, and goes on saying their names', async () => {
  const path = taskPath({ kind: 'async', state: 'asking' }, eventsOf('queued', 'running', 'asking'))
  expect(onChart(await layOut(asyncTaskMachine), path)).toMatchObject({
    state: 'active.asking',
    visited: ['active.queued', 'active.running', 'active.asking'],
  })
  expect(pathText(path)).toBe('queued → running → asking')
  const command = taskPath({ kind: 'command', state: 'running' }, eventsOf('queued'))
  expect(onChart(await layOut(commandTaskMachine), command)).toEqual(command)
})

describe('the lines that a task has gone along', () => {
  it('are those between its states, in their direction', async () => {
    expect(await linesOf('running', 'asking', 'running')).toEqual([
      'active.running > active.asking',
      'active.asking > active.running',
    ])
  })

  it.each(['queued', 'running', 'asking', 'wrapping'] as const)(
    'from %s end with that of the state around it',
    async (state) => {
      expect(await linesOf(state, 'failed')).toEqual(['active > failed'])
    },
  )

  it('end with the line of the inner state where that handles the same event itself', async () => {
    expect(await linesOf('stopping', 'failed')).toEqual(['active.stopping > failed'])
    expect(await linesOf('stopping', 'timed-out')).toEqual(['active.stopping > failed'])
    expect(await linesOf('stopping', 'cancelled')).toEqual(['active > cancelled'])
  })

  it('have none between states that no line connects, nor from a mark', async () => {
    expect(await linesOf('completed', 'running')).toEqual([])
    expect(await linesOf('running')).toEqual([])
  })
})

async function linesOf(...states: PageTaskState[]): Promise<string[]> {
  const chart = await layOut(asyncTaskMachine)
  const path = onChart(chart, taskPath({ kind: 'async', state: states.at(-1) ?? 'running' }, eventsOf(...states)))
  return Array.from(takenEdges(path, chart.edges), ({ from, to }) => `${from.join()} > ${to}`)
}
