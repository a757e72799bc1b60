/** Objects that refuse unknown fields. The error suggests the known field that was probably meant. */
import { z } from 'zod'
import { nearestName } from '../data/nearest-name.js'

/** The message about an unknown field begins with this text. */
export const KNOWN_FIELD = 'a known field'

/** Like `z.strictObject`, but the error about an unknown field names the nearest known field, or all of them when none is near. */
export function strictObject<Shape extends z.core.$ZodLooseShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  return z.strictObject(shape, { error: describeUnknownField })
}

/** Describes an unknown field. Returns undefined for any other issue: zod then describes the issue itself. */
function describeUnknownField(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'unrecognized_keys') return undefined
  // `extend` and `omit` copy this function to schemas with other fields, so the known fields come from the schema of the issue.
  const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : []
  const nearest = nearestName(issue.keys[0] ?? '', known)
  if (nearest !== undefined) return `${KNOWN_FIELD}; the nearest is ${nearest}`
  return known.length === 0 ? `${KNOWN_FIELD}; there are none` : `${KNOWN_FIELD}; the fields are ${known.join(', ')}`
}
