// A failed result as an exception: the reason of an abort, or the failure of the tool.
import { expect, it } from 'vitest'
import { executeOrThrow, ToolFailure } from '../../../../src/tools/adapters/tool-failure.js'
import { errorResult, type Tool, type ToolContext, type ToolResult } from '../../../../src/tools/tool.js'

const returning = (result: ToolResult, seen: unknown[] = []): Tool =>
  ({
    name: 'act',
    execute: (...given: unknown[]) => {
      seen.push(given)
      return Promise.resolve(result)
    },
  }) as never

const failureOf = (result: ToolResult, context: ToolContext): Promise<unknown> =>
  executeOrThrow(returning(result), {}, context).then(
    () => expect.unreachable(),
    (error: unknown) => error,
  )

it('a call that was aborted throws the reason of its signal, as it is', async () => {
  const reason = { code: 'mine' }
  expect(await failureOf(errorResult('aborted', 'no'), { signal: AbortSignal.abort(reason) })).toBe(reason)
})

it('any other failure is one of the tool, also when the signal has aborted meanwhile', async () => {
  const failed = errorResult('execution_failed', 'no', { llmContent: 'for the model' })
  for (const [result, context] of [
    [failed, { signal: AbortSignal.abort() }],
    [failed, {}],
    [errorResult('aborted', 'no', { llmContent: 'for the model' }), { signal: new AbortController().signal }],
    [errorResult('aborted', 'no', { llmContent: 'for the model' }), {}],
  ] as const) {
    const failure = await failureOf(result, context)
    expect(failure).toBeInstanceOf(ToolFailure)
    expect(failure).toMatchObject({ tool: 'act', result, message: 'for the model', code: 'TOOL_FAILED' })
    expect(String(failure)).toBe('for the model')
  }
})

it('a result without an error is returned, and the call has its input and its context', async () => {
  const result = { llmContent: 'done', returnDisplay: 'done' }
  const seen: unknown[] = []
  const context = { toolCallId: 'c1' }
  expect(await executeOrThrow(returning(result, seen), { a: 1 }, context)).toBe(result)
  expect(seen).toEqual([[{ a: 1 }, context]])
})
