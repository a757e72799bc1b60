// The bars and the lines of a task, on a terminal that keeps what is drawn.
import { expect, it, vi } from 'vitest'
import { createTaskView } from '../../../src/cli/task-view.js'
import type { Line, Terminal } from '../../../src/cli/terminal.js'

const textOf = (line: Line): string =>
  typeof line === 'string' ? line : line.map((part) => (typeof part === 'string' ? part : part.text)).join('')

function bars(rows = 10) {
  const draw = vi.fn((_lines: readonly Line[]) => undefined)
  const done = vi.fn()
  const view = createTaskView({ live: { rows, draw, done } } as unknown as Terminal)
  const last = () => draw.mock.calls.at(-1)?.[0].map(textOf)
  return { view, draw, done, last }
}

const progress = (commandIndex: number, more: object = {}) =>
  ({
    type: 'task_progress',
    taskId: 't1',
    commandIndex,
    totalCommands: 3,
    status: 'running',
    tool_name: 'act',
    intention: '',
    ...more,
  }) as never
const complete = (status: string, results: readonly object[], error?: object) =>
  ({
    type: 'task_complete',
    taskId: 't1',
    status,
    results,
    summary: { totalCommands: 3, successfulCommands: 1, duration: 5 },
    ...(error && { error }),
  }) as never

const bar = (filled: number): string => `[${'='.repeat(filled)}${'.'.repeat(20 - filled)}]`

it('a bar is as full as its command has come: never more than whole, and empty without a total', () => {
  const { view, last } = bars()
  for (const [more, filled, note] of [
    [{ progress: 1, total: 4 }, 5, ' 1/4'],
    [{ progress: 9, total: 4 }, 20, ' 9/4'],
    [{ progress: 3 }, 0, ' 3'],
    [{ progress: 3, total: 0, message: 'hm' }, 0, ' 3/0 hm'],
    [{ status: 'success' }, 20, ''],
  ] as const) {
    view.show(progress(0, more))
    const status = 'status' in more ? more.status : 'running'
    expect(last()).toEqual([`act ${bar(filled)} ${status}${note}`])
  }
})

it('the part of the rows that is shown has the current one, and ends with the last', () => {
  const rowsOf = (count: number, running: number, most: number) => {
    const { view, last } = bars(most)
    const statuses = Array.from({ length: count }, (_, at) =>
      at < running ? 'success' : at === running ? 'running' : 'pending',
    )
    view.snapshot({ commands: statuses.map((status, at) => ({ tool_name: `c${at + 1}`, status: status as never })) })
    const shown = last() ?? []
    return [shown[0]?.split(' ')[0], shown.at(-1)]
  }
  expect(rowsOf(5, 0, 5)[0]).toBe('c1')
  expect(rowsOf(5, 0, 5)[1]).toContain('c5')
  expect(rowsOf(6, 0, 5)).toEqual(['c1', 'commands 1 to 4 of 6'])
  expect(rowsOf(6, 3, 5)).toEqual(['c2', 'commands 2 to 5 of 6'])
  expect(rowsOf(6, 5, 5)).toEqual(['c3', 'commands 3 to 6 of 6'])
  // After the last one has ended: the end.
  expect(rowsOf(6, 6, 5)).toEqual(['c3', 'commands 3 to 6 of 6'])
})

it('the same note is drawn once, and takes a line of the screen', () => {
  const { view, draw, last, done } = bars(2)
  view.snapshot({ commands: [{ tool_name: 'a' }, { tool_name: 'b', intention: 'the second' }] })
  expect(last()).toEqual([`a          ${bar(0)} pending`, `the second ${bar(0)} pending`])
  const { length } = draw.mock.calls
  view.note('lost')
  view.note('lost')
  expect(draw).toHaveBeenCalledTimes(length + 1)
  expect(last()?.slice(1)).toEqual(['commands 1 to 1 of 2', 'lost'])
  view.note('')
  expect(last()).toHaveLength(2)
  expect(done).not.toHaveBeenCalled()
  view.end()
  expect(done).toHaveBeenCalledOnce()
})

it('the end has the state of each command, and keeps the note of one with an error', () => {
  const { view, last } = bars()
  view.show(progress(0, { status: 'success' }))
  view.show(progress(1, { status: 'error', error: { code: 'NO', message: 'no' } }))
  view.show(progress(2, { progress: 1, total: 2, message: 'half' }))
  view.show(
    complete(
      'failed',
      [{ status: 'success' }, { status: 'error', error: { code: 'NO', message: 'no' } }, { status: 'skipped' }, {}],
      { code: 'NO', message: 'no' },
    ),
  )
  expect(last()).toEqual([
    `act ${bar(20)} success`,
    `act ${bar(20)} error NO: no`,
    `act ${bar(0)} skipped`,
    't1 failed (2 of 3 commands in 5 ms): NO: no',
  ])
})

it('without a terminal each event is a line, and so is a command that was given up while it ran', () => {
  const lines: string[] = []
  const view = createTaskView({ say: (line: string) => lines.push(line), live: undefined } as unknown as Terminal)
  view.snapshot({ commands: [] })
  view.note('')
  view.note('lost')
  view.show(progress(1, { progress: 1, total: 4, message: 'x'.repeat(200) }))
  view.show(complete('cancelled', [{ status: 'success' }, { status: 'skipped' }, { status: 'skipped' }]))
  view.end()
  expect(lines).toEqual([
    'lost',
    `t1 [2/3] act running: 1/4 ${'x'.repeat(97)}...`,
    't1 [2/3] act skipped',
    't1 cancelled (1 of 3 commands in 5 ms)',
  ])
})
