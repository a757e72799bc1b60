/** The neutral tool: whatever its input is and whatever happens inside, a call resolves with a result. */
import { describe, expect, expectTypeOf, it, vi } from 'vitest'
import { z } from 'zod'
import { buildInvocation } from '../../../src/tools/declarative-tool.js'
import { defineTool, errorResult, type Tool, type ToolContext, type ToolResult } from '../../../src/tools/tool.js'

const inputSchema = z.strictObject({
  count: z.number().int().min(1),
  unit: z.enum(['day', 'week']).optional(),
  tags: z.array(z.string()).optional(),
})

function counter(run: (input: z.output<typeof inputSchema>, context: ToolContext) => ToolResult | Promise<ToolResult>) {
  return defineTool({
    name: 'count',
    description: 'Counts.',
    inputSchema,
    describe: (input) => `Count to ${input.count}`,
    run,
  })
}

const done: ToolResult = { llmContent: 'done', returnDisplay: 'done' }

describe('a tool', () => {
  it('infers the type of its input from its schema', async () => {
    const tool = counter((input) => {
      expectTypeOf(input).toEqualTypeOf<{
        count: number
        unit?: 'day' | 'week' | undefined
        tags?: string[] | undefined
      }>()
      return { ...done, llmContent: String(input.count) }
    })
    expectTypeOf(tool.inputSchema).toEqualTypeOf<typeof inputSchema>()
    expect((await tool.execute({ count: 3 })).llmContent).toBe('3')
  })

  it('receives the signal and the id of the call', async () => {
    const run = vi.fn((_input: unknown, _context: ToolContext) => done)
    const { signal } = new AbortController()
    await counter(run).execute({ count: 1 }, { signal, toolCallId: 'call-1' })
    expect(run).toHaveBeenCalledWith(
      { count: 1 },
      { hold: expect.any(Function) as unknown, signal, toolCallId: 'call-1' },
    )
  })

  it.each([
    [{ count: '3' }, 'params.count: got "3", expected a number.'],
    [{}, 'params.count: got undefined, expected a number.'],
    [{ count: 0 }, 'params.count: got 0, expected at least 1.'],
    [{ count: 1, unit: 'year' }, 'params.unit: got "year", expected one of "day", "week".'],
    [{ count: 1, tags: ['a', 2] }, 'params.tags[1]: got 2, expected a string.'],
    [{ count: 1, depth: 2 }, 'params.depth: got 2, expected a known field.'],
    [undefined, 'params.count: got undefined, expected a number.'],
    [null, 'params.count: got undefined, expected a number.'],
    ['3', 'params: got "3", expected an object.'],
    [[3], 'params: got an array of 1, expected an object.'],
  ])('names the invalid field of %j, what it got and what was expected', async (input, message) => {
    const run = vi.fn(() => done)
    const tool: Tool = counter(run)
    const result = await tool.execute(input)
    expect(result).toEqual({
      llmContent: `Invalid parameters for count: ${message}`,
      returnDisplay: `Invalid parameters: ${message}`,
      error: { message, type: 'parameter_validation' },
    })
    expect(run).not.toHaveBeenCalled()
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('out of numbers')
      },
    ],
    ['rejects', () => Promise.reject(new Error('out of numbers'))],
  ])('that %s returns an error', async (_what, run) => {
    const message = 'count failed: out of numbers'
    expect(await counter(run).execute({ count: 1 })).toEqual({
      llmContent: message,
      returnDisplay: message,
      error: { message, type: 'execution_failed' },
    })
  })

  it('returns an error for input that cannot be read', async () => {
    const hostile = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error('no keys')
        },
        get: () => {
          throw new Error('no')
        },
      },
    )
    const tool: Tool = counter(() => done)
    expect((await tool.execute(hostile)).error?.type).toBe('execution_failed')
    expect(tool.describe(hostile)).toBe('count')
  })

  it('does not run when its call was aborted before', async () => {
    const run = vi.fn(() => done)
    const result = await counter(run).execute({ count: 1 }, { signal: AbortSignal.abort() })
    expect(result.error).toEqual({ type: 'aborted', message: 'The call of count was aborted before it began.' })
    expect(run).not.toHaveBeenCalled()
  })

  it.each(['hold', 'onUpdate', 'onLaunched'])('does not run with a context whose %s is no function', async (field) => {
    const run = vi.fn(() => done)
    const tool = defineTool({ name: 'bare', description: '', inputSchema, run })
    const message = `context.${field}: got true, expected a function.`
    expect(await tool.execute({ count: 1 }, { [field]: true })).toMatchObject({
      error: { type: 'parameter_validation', message },
    })
    expect(run).not.toHaveBeenCalled()
  })

  it('that throws because its call was aborted returns the error `aborted`', async () => {
    const controller = new AbortController()
    const tool = counter(() => {
      controller.abort()
      controller.signal.throwIfAborted()
      return done
    })
    const result = await tool.execute({ count: 1 }, { signal: controller.signal })
    expect(result.error).toEqual({ type: 'aborted', message: 'The call of count was aborted.' })
  })

  it('describes a call, or returns its name when it cannot', () => {
    const tool: Tool = counter(() => done)
    expect(tool.describe({ count: 3 })).toBe('Count to 3')
    expect(tool.describe({ count: 'x' })).toBe('count')
    expect(defineTool({ name: 'bare', description: '', inputSchema, run: () => done }).describe({ count: 1 })).toBe(
      'bare',
    )
  })
})

describe('an invocation', () => {
  it('describes and makes the call it was built for', async () => {
    const run = vi.fn((_input: unknown, _context: ToolContext) => done)
    const { signal } = new AbortController()
    const invocation = buildInvocation(counter(run), { count: 2 })
    expect(invocation.params).toEqual({ count: 2 })
    expect(invocation.getDescription()).toBe('Count to 2')
    expect(run).not.toHaveBeenCalled()
    expect(await invocation.execute(signal)).toBe(done)
    expect(run.mock.calls[0]?.[1].signal).toBe(signal)
  })

  it('with invalid parameters returns an error', async () => {
    const invocation = buildInvocation(
      counter(() => done),
      { count: -1 },
    )
    expect(invocation.getDescription()).toBe('count')
    expect((await invocation.execute()).error?.type).toBe('parameter_validation')
  })
})

it('an error result has the message in each text that is not given', () => {
  expect(errorResult('limit_reached', 'Full', { llmContent: 'Full. Wait.' })).toEqual({
    llmContent: 'Full. Wait.',
    returnDisplay: 'Full',
    error: { message: 'Full', type: 'limit_reached' },
  })
})
