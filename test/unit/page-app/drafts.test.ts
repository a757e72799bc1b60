/** The commands of a submission while they are filled in. */
import { describe, expect, it } from 'vitest'
import { fieldsOf } from '../../../src/page/app/forms/form-fields.js'
import {
  placeOf,
  requestOf,
  withAnother,
  withChanged,
  withMoved,
  type Draft,
} from '../../../src/page/app/instances/drafts.js'

const fields = fieldsOf({ type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] })
const draft = (id: number, entry = ''): Draft => ({ id, tool: `tool${id}`, entries: { a: entry } })
const ids = (drafts: readonly Draft[]): number[] => drafts.map(({ id }) => id)

describe('the commands of a submission', () => {
  it('are added with the tool of the last one, moved to the ends and no further, and changed', () => {
    const one = withAnother([], 'first')
    expect(one).toEqual([{ id: 1, tool: 'first', entries: {} }])
    const two = withAnother(withChanged(one, 1, { tool: 'other' }), 'first')
    expect(two.map(({ id, tool }) => [id, tool])).toEqual([
      [1, 'other'],
      [2, 'other'],
    ])
    const three = withAnother(two, 'first')
    expect([withMoved(three, 1, 1), withMoved(three, 3, -1), withMoved(three, 3, -2)].map(ids)).toEqual([
      ...[
        [2, 1, 3],
        [1, 3, 2],
        [3, 1, 2],
      ],
    ])
    expect([withMoved(three, 1, -1), withMoved(three, 3, 1), withMoved(three, 9, 1)]).toEqual([three, three, three])
    // An id is not used again while others have it.
    expect(ids(withAnother(withMoved(three, 3, -2), 'first'))).toEqual([3, 1, 2, 4])
  })

  it('are sent in their order, with a name if there is one', () => {
    const drafts = [draft(2, '7'), draft(1, '8')]
    const commands = [
      { tool: 'tool2', args: { a: 7 } },
      { tool: 'tool1', args: { a: 8 } },
    ]
    expect(requestOf(' ', drafts, () => fields).request).toEqual({ commands })
    expect(requestOf(' Sum ', drafts, () => fields).request).toEqual({ name: 'Sum', commands })
  })

  it('are not sent while one is wrong', () => {
    const { request, errors } = requestOf('', [draft(1, '7'), draft(2), draft(3, 'x')], () => fields)
    expect(request).toBeUndefined()
    expect([...(errors ?? [])]).toEqual([
      [2, { a: 'Fill this in.' }],
      [3, { a: 'A number is needed, not x.' }],
    ])
  })

  it('have the errors of the server, wherever they are by then', () => {
    const sent = [draft(4), draft(2)]
    const places = ['name', 'commands.1.args.a.0', 'commands.0.args', 'commands.0.tool', 'commands.0.args.\n'].map(
      (field) => placeOf(field, sent),
    )
    expect(places).toEqual([
      { type: 'name' },
      ...[
        { id: 2, path: 'a.0' },
        { id: 4, path: '' },
        { id: 4, path: '' },
        { id: 4, path: '\n' },
      ].map((place) => ({ type: 'command', ...place })),
    ])
    expect(['commands', 'commands.2.args.a', 'other', '', undefined].map((field) => placeOf(field, sent).type)).toEqual(
      Array(5).fill('all'),
    )
  })
})
