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
    'its text, and the structured content that is in no text',
    { content: [{ type: 'text', text: 'two files' }], structuredContent: { files: ['a', 'b'] } },
    'success: two files\n{"files":["a","b"]}',
  ],
  [
    'its text alone if that has the same JSON',
    { content: [{ type: 'text', text: '{ "b": 1, "a": 2 }' }], structuredContent: { a: 2, b: 1 } },
    'success: { "b": 1, "a": 2 }',
  ],
  [
    'where resources are, and the text of those that are embedded',
    {
      content: [
        { type: 'resource_link', name: 'log', uri: 'file:///a.log', mimeType: 'text/plain' },
        { type: 'resource', resource: { uri: 'file:///b', mimeType: 'text/plain', text: 'the text' } },
        { type: 'resource', resource: { uri: 'file:///c', blob: 'AAAA' } },
      ],
    },
    'success: [resource_link log file:///a.log text/plain]\n[resource file:///b text/plain]\nthe text\n[resource file:///c]',
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
