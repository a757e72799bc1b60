/** The words that ask a question, and what an answer in words becomes. */
import { describe, expect, it } from 'vitest'
import type { TaskQuestion } from '../../../machines/records.js'
import {
  answerHint,
  expectedAnswer,
  questionWords,
  valueAnswer,
  writtenAnswer,
} from '../../../src/features/questions/question-texts.js'

const asking = (properties: object, more: object = {}): TaskQuestion => ({
  id: 'question-1',
  askedAt: 0,
  message: 'Go?',
  schema: { type: 'object', properties, ...more },
})
const one = (schema: object): TaskQuestion => asking({ it: schema }, { required: ['it'] })
const two = asking({ name: { type: 'string' }, count: { type: 'integer' } }, { required: ['count'] })
const NUMBER = { type: 'integer', minimum: 3 }

describe('a question in words', () => {
  it.each<[string, TaskQuestion, string]>([
    ['a list of values', one({ enum: ['a', 'b'] }), 'Go? (a, b)'],
    ['one value', one({ const: 'a' }), 'Go? (a)'],
    ['alternatives', one({ oneOf: [{ const: 'a' }, { const: 2 }] }), 'Go? (a, 2)'],
    ['other alternatives', one({ anyOf: [{ const: 'a' }] }), 'Go? (a)'],
    ['alternatives of which one is open', one({ oneOf: [{ const: 'a' }, { type: 'string' }] }), 'Go?'],
    ['any text', one({ type: 'string' }), 'Go?'],
    ['two fields', asking({ a: { enum: ['x'] }, b: { enum: ['y'] } }), 'Go?'],
    ['no field', asking({}), 'Go?'],
  ])('has its choices where it has one field with %s', (_what, question, words) => {
    expect(questionWords(question)).toBe(words)
  })

  it('has at most 500 characters', () => {
    expect(questionWords({ ...one({}), message: 'x'.repeat(500) })).toHaveLength(500)
    expect(questionWords({ ...one({}), message: 'x'.repeat(501) })).toBe(`${'x'.repeat(500)}...`)
  })

  it.each<[TaskQuestion, string]>([
    [one({ enum: ['a', 2] }), 'one of "a", 2'],
    [one({ type: 'boolean' }), 'true or false'],
    [one(NUMBER), `a value, or an object that fits ${JSON.stringify(one(NUMBER).schema)}`],
    [two, `an object that fits ${JSON.stringify(two.schema)}`],
  ])('says what answers it', (question, expected) => {
    expect(expectedAnswer(question)).toBe(expected)
  })

  it.each<[TaskQuestion, unknown]>([
    [one({ enum: ['b', 'a'] }), 'b'],
    [one({ type: 'boolean' }), true],
    [one(NUMBER), 3],
    [one({ type: ['number', 'null'] }), 1],
    [one({ type: 'array', items: { type: 'boolean' } }), { it: [true] }],
    [one({ type: 'object' }), { it: {} }],
    [one({ type: 'string' }), '...'],
    [two, { count: 1 }],
    [asking({ a: { type: 'string' }, b: { type: 'boolean' } }), { a: '...', b: true }],
  ])('has an example with the fields that are needed, or a value alone', (question, answer) => {
    const hint = answerHint('task-1', question, { tool: 'reply', params: { mode: 'x' } })
    const [, json = ''] = /^Answer with reply (.*), or "decline": true instead of "answer"\.$/.exec(hint) ?? []
    expect(JSON.parse(json)).toEqual({ task_id: 'task-1', mode: 'x', question_id: 'question-1', answer })
  })
})

describe('an answer in words', () => {
  it.each<[string, TaskQuestion, string, unknown]>([
    ['text where text is wanted, also if it is JSON', one({ type: 'string' }), '3', { it: '3' }],
    ['a number where one is wanted', one(NUMBER), '4', { it: 4 }],
    ['a whole object', two, '{"count":2,"name":"n"}', { count: 2, name: 'n' }],
    ['the whole object of one field', one(NUMBER), '{"it":5}', { it: 5 }],
    ['text that does not fit the only field', one(NUMBER), 'many', { it: 'many' }],
    ['text for no field', asking({}), 'text', { answer: 'text' }],
  ])('is %s', (_what, question, text, content) => {
    expect(writtenAnswer(question, text)).toEqual({ action: 'accept', content })
  })

  it('has no content when nothing fits several fields', () => {
    expect(writtenAnswer(two, 'text')).toEqual({ action: 'accept' })
    expect(writtenAnswer(two, '{"name":"n"}')).toEqual({ action: 'accept', content: { name: 'n' } })
  })

  it('is the only field, or all of them, when it is a value', () => {
    expect(valueAnswer(one(NUMBER), 4)).toEqual({ action: 'accept', content: { it: 4 } })
    expect(valueAnswer(one(NUMBER), { it: 5 })).toEqual({ action: 'accept', content: { it: 5 } })
    expect(valueAnswer(one({ type: 'array' }), [1])).toEqual({ action: 'accept', content: { it: [1] } })
    expect(valueAnswer(asking({}), true)).toEqual({ action: 'accept', content: { answer: true } })
  })
})
