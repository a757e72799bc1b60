/** Changes one field in the text of a configuration. Comments, order and spelling of everything else stay. */
import { applyEdits, modify, type JSONPath } from 'jsonc-parser'
import { InvalidInputError } from '../errors.js'
import { parseConfigJson } from '../protocol/config-json.js'

/**
 * Returns the text of a configuration with another value in one field.
 * @param text JSON with comments, which must be valid
 * @param field as errors write it, such as `maxAsyncTasks` or `subagents[0].timeoutSeconds`; the index after the last item adds one
 * @param value plain data
 * @throws INVALID_INPUT for a field that cannot be there
 */
export function withField(text: string, field: string, value: unknown): string {
  const path = pathOf(field)
  const holder = valueAt(parseConfigJson(text), path.slice(0, -1))
  const last = path.at(-1)
  if (typeof last === 'number' && (!Array.isArray(holder) || last > holder.length)) {
    const items = Array.isArray(holder) ? `an index of at most ${holder.length}` : 'a list before the index'
    throw new InvalidInputError('field', field, items)
  }
  const isArrayInsertion = Array.isArray(holder) && last === holder.length
  return applyEdits(text, modify(text, path, value, { formattingOptions: formatOf(text), isArrayInsertion }))
}

function pathOf(field: string): JSONPath {
  if (!/^[^.[\]]+(\.[^.[\]]+|\[\d{1,6}\])*$/.test(field)) {
    throw new InvalidInputError(
      'field',
      field,
      'names with dots between them, and indexes in brackets, such as subagents[0].command',
    )
  }
  return Array.from(field.matchAll(/\[(\d+)\]|[^.[\]]+/g), ([name, index]) =>
    index === undefined ? name : Number(index),
  )
}

const valueAt = (value: unknown, path: JSONPath): unknown =>
  path.reduce<unknown>((from, key) => (from as Record<PropertyKey, unknown> | null | undefined)?.[key], value)

/** The indentation and the line break that the text has already. */
function formatOf(text: string): { insertSpaces: boolean; tabSize: number; eol: string } {
  const indent = /\n([ \t]+)\S/.exec(text)?.[1] ?? '  '
  return { insertSpaces: !indent.startsWith('\t'), tabSize: indent.length, eol: text.includes('\r\n') ? '\r\n' : '\n' }
}
