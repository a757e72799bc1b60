/** Finds a program's session id, its result and more in the JSON that it prints. */
import { createLineSplitter } from '../data/lines.js'
import type { TaskSession } from '../../machines/records.js'
import type { StoredJson } from '../store/store.js'
import { nodeBuiltin } from '../system/node-builtins.js'
import { SESSION_ID } from '../protocol/async-tasks.js'
import { PRINTED_FIELD } from '../protocol/program-session.js'

/** A value that a program printed, and the number of its line. A value of the whole output has the line 0. */
export interface PrintedValue {
  readonly value: unknown
  readonly line: number
}

/**
 * Returns a field of the JSON that a program printed; undefined if there is none. FIELD is a name, or a path such as `OUTER.INNER`. `json:FIELD` reads
 * the whole output as one JSON value and, if that has no such field, the last line. `jsonl:TYPE/FIELD` reads the last line whose `type` is TYPE and that
 * has the field, `jsonl:TYPE[OTHER=VALUE]/FIELD` the last one of them whose field OTHER is VALUE.
 */
export function printedValue(
  field: string,
  printed: string,
  isWanted: (value: unknown) => boolean = () => true,
): PrintedValue | undefined {
  const { type, path, lines } = placeOf(field, printed)
  if (type !== undefined) return printedValues(field, printed, isWanted).next().value
  const value = [printed, lines.at(-1) ?? ''].map((text) => valueAt(parsed(text), path)).find(isPresent(isWanted))
  return value === undefined ? undefined : { value, line: 0 }
}

function placeOf(field: string, printed: string) {
  const [, type, conditions = '', path = ''] = PRINTED_FIELD.exec(field) ?? []
  return { type, conditions, path, lines: printed.trimEnd().split('\n') }
}

/** The values of a field `jsonl:…`, from the last line to the first. */
export function* printedValues(
  field: string,
  printed: string,
  isWanted: (value: unknown) => boolean = () => true,
): Generator<PrintedValue, undefined> {
  const { type = '', conditions, path, lines } = placeOf(field, printed)
  const expected = [...conditions.matchAll(/\[([^=]+)=([^\]]*)\]/g)].map(
    ([, at = '', text = '']) => [at, text] as const,
  )
  const isPresentValue = isPresent(isWanted)
  for (let line = lines.length - 1; line >= 0; line -= 1) {
    const text = lines[line] ?? ''
    const object = text.includes(type) ? parsed(text) : undefined
    if (valueAt(object, 'type') !== type) continue
    if (expected.some(([at, value]) => String(valueAt(object, at)) !== value)) continue
    const value = valueAt(object, path)
    if (isPresentValue(value)) yield { value, line }
  }
  return undefined
}

const isPresent =
  (isWanted: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    value !== undefined && value !== null && isWanted(value)

const isText = (value: unknown): value is string => typeof value === 'string'

/** As `printedValue`, for fields that are texts. */
export function printedText(field: string, printed: string): string | undefined {
  return printedValue(field, printed, isText)?.value as string | undefined
}

/** As `printedText`, for texts that come in parts: joins the last part and those before it, up to a line of JSON that is none. */
export function printedParts(field: string, printed: string): string | undefined {
  const { type, lines } = placeOf(field, printed)
  if (type === undefined) return printedText(field, printed)
  const parts: string[] = []
  let before: number | undefined
  for (const { value, line } of printedValues(field, printed, isText)) {
    if (before !== undefined && lines.slice(line + 1, before).some((text) => isObject(parsed(text)))) break
    parts.push(value as string)
    before = line
  }
  return parts.length === 0 ? undefined : parts.reverse().join('')
}

/** The sum of a field that is a number in several lines; undefined if there is none. */
export function printedSum(field: string, printed: string): number | undefined {
  const isNumber = (value: unknown): value is number => typeof value === 'number'
  const isOfLines = placeOf(field, printed).type !== undefined
  if (!isOfLines) return printedValue(field, printed, isNumber)?.value as number | undefined
  const numbers = [...printedValues(field, printed, isNumber)].map(({ value }) => value as number)
  return numbers.length === 0 ? undefined : numbers.reduce((sum, one) => sum + one, 0)
}

const valueAt = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((at, name) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined), value)

const isObject = (value: unknown): value is StoredJson => typeof value === 'object' && value !== null

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Calls `note` with each new session id that the program prints. Invalid ids are ignored. */
export function followSession(from: string, note: (id: string) => void) {
  let last: string | undefined
  const read = (printed: string): void => {
    const id = printedText(from, printed)
    if (id !== undefined && id !== last && SESSION_ID.test(id)) note((last = id))
  }
  const lines = from.startsWith('jsonl:') ? createLineSplitter(read) : undefined
  // The splitter may drop a line that is too long, so the whole text is read at the end.
  return { push: (text: string) => lines?.push(text), end: read }
}

/** Returns why a session cannot be resumed; undefined if it can. */
export function whyNoSession(session: TaskSession | undefined): string | undefined {
  if (session === undefined) return 'its run has named no session'
  const { cwd = '.' } = session
  const folder = nodeBuiltin('node:fs').statSync(cwd, { throwIfNoEntry: false })
  return folder?.isDirectory() === true ? undefined : `its working directory ${JSON.stringify(cwd)} is gone`
}
