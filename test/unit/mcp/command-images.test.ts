// Which images of command tasks an answer has, and in which order.
import { expect, it } from 'vitest'
import { imagesOf } from '../../../src/mcp/command-images.js'

const image = (data: string) => ({ type: 'image', data, mimeType: 'image/png' })
const task = (asyncTaskId: string | undefined, ...results: readonly (readonly unknown[])[]) => ({
  metadata: { asyncTaskId },
  commands: results.map((content) => ({ result: { content } })),
})
/** @param tasks the newest first */
const shown = (taskIds: readonly string[], ...tasks: readonly object[]) =>
  imagesOf({ commandTasks: { listTasks: () => [...tasks] } } as never, taskIds)
const MIB = 1024 * 1024

it('images are in the order in which they were made, and those of other tasks are left out', () => {
  const tasks = [
    task('t2', [image('eeee')]),
    task('other', [image('xxxx')]),
    task(undefined, [image('xxxx')]),
    task('t1', [image('aaaa'), { type: 'text', text: 'no image' }, image('bbbb')], [image('cccc')]),
  ]
  expect(shown(['t1', 't2'], ...tasks)).toEqual([
    { type: 'text', text: 'The images of these results, in order:' },
    ...['aaaa', 'bbbb', 'cccc', 'eeee'].map(image),
  ])
  expect(shown(['t3'], ...tasks)).toEqual([])
})

it('the last images are shown, as many as fit, to the last character', () => {
  const [most, more] = ['x'.repeat(2 * MIB), 'x'.repeat(2 * MIB + 4)]
  expect(shown(['t1'], task('t1', [image('aaaa'), image(most), image(most)]))).toEqual([
    { type: 'text', text: expect.stringContaining('The last 2 of the 3 images') as string },
    image(most),
    image(most),
  ])
  expect(shown(['t1'], task('t1', [image(most), image(more)]))).toHaveLength(2)
  // One that does not fit is not passed over for an earlier one.
  expect(shown(['t1'], task('t1', [image('aaaa'), image('x'.repeat(4 * MIB + 4)), image('bbbb')]))).toHaveLength(2)
})
