import { describe, expect, it } from 'vitest'
import {
  interruptedError,
  parseOrUndefined,
  readFailure,
  readJobData,
  readReturnValue,
  toJobData,
  toReturnValue,
  toRunInput,
  writeFailure,
} from '../../../src/bullmq/wire.js'

const given = { id: 'a', subagent: 'research', goal: 'find out' }
const input = { id: 'a', subagentName: 'research', goalPrompt: 'find out' }
const sent = { owner: 'main', attempt: 1, host: 'channel' }

describe('the data of a job', () => {
  it('is read as it was written', () => {
    const data = toJobData(
      { ...given, context: { depth: [1, { two: 'x' }] } },
      { ...sent, trace: { traceparent: 't' } },
    )
    expect(readJobData(JSON.parse(JSON.stringify(data)))).toEqual(data)
  })

  it('has the fields of a run under the names that every version sends', () => {
    const further = {
      context: { depth: 2 },
      cwd: '/project',
      behaviourPrompts: ['gently'],
      expectedOutputs: { answer: 'a number' },
      toolWhitelist: ['read'],
      results: { b: { status: 'completed' } },
    } as const
    const data = toJobData({ ...given, ...further }, sent)
    const { context, cwd, behaviourPrompts, expectedOutputs, toolWhitelist, results } = further
    expect(data.input).toEqual({
      ...input,
      params: {
        context,
        cwd,
        behaviour_prompts: behaviourPrompts,
        expected_outputs: expectedOutputs,
        tool_whitelist: toolWhitelist,
      },
      results,
    })
    expect(toRunInput(readJobData(data))).toEqual({ ...given, ...further })
  })

  it.each([
    [{ depth: 2 }, { context: { depth: 2 } }],
    [
      { depth: 2, cwd: '/', context: { width: 3 } },
      { cwd: '/', context: { depth: 2, width: 3 } },
    ],
    ['text', {}],
    [undefined, {}],
  ])('of an earlier version with the params %j gives its run %j', (params, fields) => {
    expect(toRunInput(readJobData({ input: { ...input, params }, ...sent }))).toEqual({ ...given, ...fields })
  })

  it('is refused when it is too large or too deep, and named', () => {
    const deep = Array.from({ length: 200 }).reduce<unknown>((inner) => [inner], 'x')
    expect(() => toJobData({ ...given, context: { deep } }, sent)).toThrow(/^input\.context: .*at most 100 levels deep/)
    const big = { text: 'x'.repeat(1024 * 1024) }
    expect(() => toJobData({ ...given, context: big }, sent)).toThrow(
      'input: got "(too large to be shown)", expected at most 1048576 bytes of JSON.',
    )
  })

  it('may have exactly as much as is allowed', () => {
    const bytes = Buffer.byteLength(JSON.stringify({ ...input, params: { context: { text: '' } } }))
    const text = 'é'.repeat((1024 * 1024 - bytes - (bytes % 2)) / 2) + 'x'.repeat(bytes % 2)
    expect(toJobData({ ...given, context: { text } }, sent).input).toEqual({ ...input, params: { context: { text } } })
    expect(() => toJobData({ ...given, context: { text: `${text}x` } }, sent)).toThrow(/1048576 bytes/)
  })

  it.each([undefined, {}, { input: {}, ...sent }, { input, ...sent, attempt: 0 }])(
    'is refused when no host has sent it: %j',
    (data) => {
      expect(() => readJobData(data)).toThrow(/was not sent by agent-tasks/)
    },
  )
})

describe('a failure', () => {
  const across = (reason: unknown): Error & Record<string, unknown> =>
    readFailure(writeFailure(reason), 'the reason of the job') as Error & Record<string, unknown>

  it('keeps what policies and records read', () => {
    const reason = Object.assign(new TypeError('wrong'), {
      code: 'X',
      exitCode: 3,
      signal: 'SIGKILL',
      retryAfterMs: 5,
      status: 429,
    })
    expect(across(reason)).toMatchObject({
      message: 'wrong',
      name: 'TypeError',
      code: 'X',
      exitCode: 3,
      signal: 'SIGKILL',
      retryAfterMs: 5,
      status: 429,
    })
  })

  it('is only text when its fields are something else, or cannot be read', () => {
    expect(across(Object.assign(new Error('wrong'), { code: {}, exitCode: 'x' })).message).toBe('wrong')
    const hostile = {
      get message(): string {
        throw new Error('no')
      },
    }
    expect(across(hostile).message).toMatch(/The run failed with/)
    expect(across('text').message).toBe('text')
    expect(across(undefined).message).toBe('The run failed without saying why.')
  })

  it('has at most 100,000 characters', () => {
    expect(across(new Error('x'.repeat(100_000))).message).toBe('x'.repeat(100_000))
    expect(across(new Error('x'.repeat(100_001))).message).toBe('x'.repeat(100_000))
  })

  it('is the reason of the job when there is nothing more', () => {
    expect(readFailure('', 'the reason of the job').message).toBe('the reason of the job')
    expect(readFailure('{"x":1}', '').message).toBe('The run failed without saying why.')
  })

  it('has the code of an interruption when nobody knows its end', () => {
    expect(interruptedError('gone')).toMatchObject({ code: 'INTERRUPTED', message: 'gone' })
  })
})

describe('an output', () => {
  it('is read as it was written, and text becomes the final message', () => {
    expect(readReturnValue(JSON.stringify(toReturnValue({ a: [1] })))).toEqual({ a: [1] })
    expect(toReturnValue('done')).toEqual({ final_message: 'done' })
    expect(toReturnValue(undefined)).toEqual({})
  })

  it('is refused when it is too large to be sent', () => {
    const most = { text: 'x'.repeat(64 * 1024 * 1024 - '{"text":""}'.length) }
    expect((toReturnValue(most) as typeof most).text).toHaveLength(most.text.length)
    expect(() => toReturnValue({ text: `${most.text}x` })).toThrow(/too large/)
    expect(() => toReturnValue({ text: 'x'.repeat(64 * 1024 * 1024) })).toThrow(
      /too large to be sent: more than 67108864 bytes/,
    )
  })
})

it('what is no JSON is undefined', () => {
  expect(parseOrUndefined('{')).toBeUndefined()
  expect(parseOrUndefined('[1]')).toEqual([1])
})
