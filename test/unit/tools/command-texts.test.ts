/** The text for a model about the result of a command, whatever that is. */
import { expect, it } from 'vitest'
import { progressText } from '../../../src/tools/command-texts.js'

const said = (result: unknown): string =>
  progressText({
    type: 'task_progress',
    taskId: 't',
    instanceId: 'i',
    commandId: 'cmd_1',
    commandIndex: 0,
    totalCommands: 2,
    status: 'success',
    timestamp: 0,
    tool_name: 'look',
    intention: '',
    result,
  })

it.each([
  [
    'its text',
    {
      content: [
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
      ],
    },
    'success: one\ntwo',
  ],
  [
    'the kind of what is no text',
    { content: [{ type: 'image', mimeType: 'image/png' }, {}, 5] },
    'success: [image image/png]\n[content]\n[content]',
  ],
  ['as JSON what is no result of a tool', { odd: 1 }, 'success: {"odd":1}'],
  ['nothing more where there is nothing', undefined, 'success'],
])('is %s', (_what, result, text) => {
  expect(said(result)).toBe(`[1/2] look: ${text}`)
})
