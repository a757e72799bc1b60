/** The error for a request that does not match its route. */
import type { z } from 'zod'
import { preview } from '../text/preview.js'
import { describeIssue } from '../protocol/parse.js'

/** The part of Hono's request that is used. */
interface ReadableRequest {
  json: () => Promise<unknown>
  query: () => object
  header: () => object
  param: () => object
}

/** @param result what the validation of a route found, in one part of the request */
export async function describeInvalid(
  { target, error }: { readonly target: string; readonly error: z.ZodError },
  request: ReadableRequest,
): Promise<{ readonly field: string; readonly expected: string; readonly problem: string }> {
  // A request without a body also fails here.
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
