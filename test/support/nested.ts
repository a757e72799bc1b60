/** Makes an object with this many levels. */
export function nested(levels: number): Record<string, unknown> {
  let value: Record<string, unknown> = {}
  for (let level = 1; level < levels; level += 1) value = { in: value }
  return value
}
