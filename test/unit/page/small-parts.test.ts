// The small parts of the page at their edges: texts, images, causes, words of commands.
import { expect, it } from 'vitest'
import { causeText } from '../../../src/page/cause-text.js'
import { closedQuestion, answerBytes } from '../../../src/page/closed-questions.js'
import { isLongCommand, shownWords } from '../../../src/page/command-words.js'
import { describeImage, findImages } from '../../../src/page/images.js'
import { fittingText, heldBytes } from '../../../src/page/texts.js'

it('a text takes one byte for each character, or two where one of them does not fit into one', () => {
  expect([heldBytes(undefined), heldBytes(''), heldBytes('é\xff'), heldBytes('é€')]).toEqual([0, 0, 2, 4])
  expect(fittingText('x'.repeat(11), 10)).toBe('x'.repeat(10))
  expect(fittingText('€'.repeat(11), 10)).toBe('€'.repeat(5))
  // What does not fit is not what makes it wide.
  expect(fittingText(`${'x'.repeat(10)}€`, 10)).toBe('x'.repeat(10))
  expect(fittingText('x€', 3)).toBe('x')
})

it('the size of an image is that of its bytes, without what fills its base64', () => {
  const sizes = ['', 'a', 'ab', 'abc', 'abcd'].map((text) => {
    const data = Buffer.from(text).toString('base64')
    return describeImage({ mimeType: 'image/png', data }, 3)
  })
  expect(sizes.map(({ bytes }) => bytes)).toEqual([0, 1, 2, 3, 4])
  expect(sizes[0]).toEqual({ index: 3, mimeType: 'image/png', bytes: 0 })
})

it('100 images are found, in order, wherever they are', () => {
  const image = (data: string) => ({ type: 'image', data, mimeType: 'image/png' })
  expect(findImages([[image('a'), { b: { c: [image('b')] } }], image('c')]).map(({ data }) => data)).toEqual([
    'a',
    'b',
    'c',
  ])
  const many = Array.from({ length: 101 }, (_, at) => image(String(at)))
  expect(findImages([many]).map(({ data }) => data)).toEqual(many.slice(0, 100).map(({ data }) => data))
  expect(
    findImages([
      { ...image('a'), mimeType: 'image/svg+xml' },
      { ...image('a'), data: 1 },
    ]),
  ).toEqual([])
})

it('five causes are shown, each of them to 10,000 characters', () => {
  let error: { stack: string; cause?: unknown } = { stack: 'cause 6' }
  for (let at = 5; at >= 1; at -= 1) error = { stack: `cause ${at}`, cause: error }
  expect(causeText(error)).toBe([1, 2, 3, 4, 5].map((at) => `cause ${at}`).join('\nCaused by: '))
  expect(causeText({ stack: 'x'.repeat(10_001) })).toBe('x'.repeat(10_000))
  expect(causeText({ stack: '', cause: null })).toMatch(/\nCaused by: null$/)
})

it('a command of 20,000 characters and 1,000 words is shown whole, and none of one more', () => {
  const whole = ['x'.repeat(19_000), 'y'.repeat(1000)]
  expect([isLongCommand(whole), shownWords(whole)]).toEqual([false, whole])
  const longer = [...whole, 'z']
  expect(shownWords(longer)).toEqual([...whole, '…'])
  expect(shownWords(['x'.repeat(19_000), 'y'.repeat(1001)])).toEqual([...whole, '…'])
  const words = Array.from({ length: 1001 }, () => 'w')
  expect(shownWords(words.slice(1))).toHaveLength(1000)
  expect(shownWords(words)).toEqual([...words.slice(1), '…'])
})

it('a closed question says how it was closed, and has the beginning of its answer', () => {
  const question = { id: 'q1', message: 'x'.repeat(2001), askedAt: 5, schema: {} } as never
  expect(closedQuestion(question, undefined, 9)).toEqual({
    id: 'q1',
    message: 'x'.repeat(2000),
    askedAt: 5,
    closedAt: 9,
    action: 'withdrawn',
  })
  const whole = { a: 'y'.repeat(4000 - JSON.stringify({ a: '' }).length) }
  const answered = closedQuestion(question, { action: 'accept', content: whole }, 9)
  expect(answered).toMatchObject({
    action: 'accept',
    by: 'host',
    content: { type: 'json', text: JSON.stringify(whole), bytes: 4000, isCut: false },
  })
  expect(answerBytes(answered)).toBe(200 + 2 + 2000 + 4000)
  const cut = closedQuestion(question, { action: 'accept', content: { a: `${whole.a}y` } }, 9)
  expect(cut.content).toMatchObject({ bytes: 4000, isCut: true })
})
