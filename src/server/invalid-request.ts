/** Creates the error for a request that does not match the schemas of its route. */
import type { z } from 'zod'
import { preview } from '../data/preview.js'
import { describeIssue } from '../protocol/parse.js'

/** The part of Hono's request that is used here. */
interface ReadableRequest {
  json: () => Promise<unknown>
  query: () => object
  header: () => object
  param: () => object
}

/** @param result what the validation found in one part of the request: parameters, query, headers or body */
export async function describeInvalid(
  { target, error }: { readonly target: string; readonly error: z.ZodError },
  request: ReadableRequest,
): Promise<{ readonly field: string; readonly expected: string; readonly problem: string }> {
  // A missing body fails the validation as well, so reading it must not throw.
  const body = (): Promise<unknown> => request.json().catch(() => undefined)
  const given: Readonly<Record<string, () => unknown>> = {
    json: body,
    query: () => request.query(),
    header: () => request.header(),
  }
  const data: unknown = await (given[target] ?? (() => request.param()))()
  const { field, received, expected } = describeIssue(error, data, target === 'json' ? 'body' : target)
  return { field, expected, problem: `${field}: got ${preview(received)}, expected ${expected}.` }
}
