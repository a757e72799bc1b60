/** Server-Sent Events (WHATWG HTML, 9.2.6), wherever the network cuts them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createStreamParser, type StreamEvent } from '../../../src/page/app/stream/stream-parser.js'
import { checkProperty } from '../../support/property.js'

function parse(...pieces: string[]): StreamEvent[] {
  const events: StreamEvent[] = []
  const parser = createStreamParser((event) => events.push(event))
  for (const piece of pieces) parser.feed(piece)
  return events
}

describe('the parser of streams', () => {
  it('reads the id, the event and the lines of the data', () => {
    expect(parse('id: 7\nevent: tasks\ndata: a\ndata:  b\ndata\n\n')).toEqual([
      { id: '7', event: 'tasks', data: 'a\n b\n' },
    ])
  })

  it('keeps the last id, and names an event without a name `message`', () => {
    expect(parse('id: 7\ndata: a\n\ndata: b\n\n').map(({ id, event }) => [id, event])).toEqual([
      ['7', 'message'],
      ['7', 'message'],
    ])
  })

  it('takes no event without data, without an end, or from a comment', () => {
    expect(parse(': beat\n\nevent: hello\n\ndata: cut')).toEqual([])
  })

  it('passes over unknown fields and ids with a NUL', () => {
    expect(parse('data: a\nretry: 3\nid: x\0y\nother: z\n\n')).toEqual([{ id: '', event: 'message', data: 'a' }])
  })

  it('reads the same events however the stream is cut', () =>
    checkProperty(
      'a stream is the same in any pieces',
      fc.property(
        fc.array(
          fc.record({ id: fc.nat(), data: fc.string({ maxLength: 8 }).map((text) => text.replace(/[\r\n]/g, '')) }),
        ),
        fc.constantFrom('\n', '\r\n'),
        fc.array(fc.nat({ max: 12 })),
        (sent, lineEnd, cuts) => {
          const text = sent
            .map(({ id, data }) => [`id: ${id}`, 'event: one', `data: ${data}`, 'data: more', '', ''].join(lineEnd))
            .join('')
          const pieces: string[] = []
          let at = 0
          for (const length of cuts) {
            pieces.push(text.slice(at, at + length))
            at += length
          }
          expect(parse(...pieces, text.slice(at))).toEqual(
            sent.map(({ id, data }) => ({ id: String(id), event: 'one', data: `${data}\nmore` })),
          )
        },
      ),
    ))
})
