// The edges of what is sent of results: bytes of JSON, of one result and of a message.
import { expect, it } from 'vitest'
import {
  eventWithInlineResults,
  MAX_INLINE_BYTES,
  MAX_INLINE_RESULT_BYTES,
  withInlineResults,
} from '../../../src/server/backend/inline-results.js'
import type { Task } from '../../../src/protocol/command-tasks.js'

/** A text whose JSON has so many bytes, of which half are those of characters of two. */
const textOf = (bytes: number): string => 'é'.repeat((bytes - 2) >> 1) + 'x'.repeat((bytes - 2) % 2)
const taskWith = (...results: readonly unknown[]) =>
  ({ id: 't1', commands: results.map((result) => ({ tool_name: 'act', result })) }) as unknown as Task
const shown = (task: Task) => withInlineResults(task).commands.map(({ result, resultRef }) => resultRef ?? result)

it('a result of the most bytes is sent as it is, and one of a byte more is referred to by its index', () => {
  const [most, more] = [textOf(MAX_INLINE_RESULT_BYTES), textOf(MAX_INLINE_RESULT_BYTES + 1)]
  expect(shown(taskWith('small', undefined, most, more))).toEqual([
    'small',
    undefined,
    most,
    { path: '/tasks/t1/commands/3/result', bytes: MAX_INLINE_RESULT_BYTES + 1 },
  ])
})

it('the results of a message fill it to the last byte, and one that is referred to takes no room', () => {
  const quarter = textOf(MAX_INLINE_BYTES / 4)
  const rest = textOf(10)
  const part = textOf(MAX_INLINE_BYTES / 4 - 10)
  const task = taskWith(quarter, textOf(MAX_INLINE_RESULT_BYTES + 1), quarter, quarter, part, rest, textOf(3))
  expect(withInlineResults(task).commands.map(({ resultRef }) => resultRef !== undefined)).toEqual([
    false,
    true,
    false,
    false,
    false,
    false,
    true,
  ])
})

it('a task or an event with nothing to refer to is the same object', () => {
  const task = taskWith('small', 'small')
  expect(withInlineResults(task)).toBe(task)
  const complete = { type: 'task_complete', taskId: 't1', results: [{ result: 'small' }] } as never
  expect(eventWithInlineResults(complete)).toBe(complete)
  const progress = { type: 'task_progress', taskId: 't1', commandIndex: 4, result: textOf(MAX_INLINE_RESULT_BYTES + 1) }
  expect(eventWithInlineResults(progress as never)).toEqual({
    type: 'task_progress',
    taskId: 't1',
    commandIndex: 4,
    resultRef: { path: '/tasks/t1/commands/4/result', bytes: MAX_INLINE_RESULT_BYTES + 1 },
  })
})
