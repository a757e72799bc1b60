/** Why a request does not match its route. */
import type { HonoRequest } from 'hono'
import type { z } from 'zod'
import { preview } from '../preview.js'
import { describeIssue } from '../protocol/parse.js'

/** @param result what the validation of a route found, in one part of the request */
export async function describeInvalid(
  { target, error }: { readonly target: string; readonly error: z.ZodError },
  request: HonoRequest<string, object>,
): Promise<{ readonly field: string; readonly expected: string; readonly problem: string }> {
  // A request without a body fails here, too.
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
