/** Objects that refuse unknown fields, and suggest the field that was probably meant. */
import { z } from 'zod'
import { nearestName } from '../text/nearest-name.js'

/** Begins the message about an unknown field. */
export const KNOWN_FIELD = 'a known field'

/** `z.strictObject`, whose error about an unknown field names the nearest known one, or else all of them. */
export function strictObject<Shape extends z.core.$ZodLooseShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  return z.strictObject(shape, { error: describeUnknownField })
}

/** Describes an unknown field; undefined for any other issue, so that zod describes it. */
function describeUnknownField(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'unrecognized_keys') return undefined
  // `extend` and `omit` keep this function, so the fields come from the schema of the issue.
  const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : []
  const nearest = nearestName(issue.keys[0] ?? '', known)
  if (nearest !== undefined) return `${KNOWN_FIELD}; the nearest is ${nearest}`
  return known.length === 0 ? `${KNOWN_FIELD}; there are none` : `${KNOWN_FIELD}; the fields are ${known.join(', ')}`
}
