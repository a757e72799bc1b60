/** Finds a program's session id and result in the JSON that it prints. */
import { createLineSplitter } from '../data/lines.js'
import type { TaskSession } from '../../machines/records.js'
import type { StoredJson } from '../store/store.js'
import { nodeBuiltin } from '../system/node-builtins.js'
import { SESSION_ID } from '../protocol/async-tasks.js'
import { PRINTED_FIELD } from '../protocol/program-session.js'

/**
 * Returns the text of a field in the JSON that a program printed; undefined if there is none. FIELD is a name, or a path such as `OUTER.INNER`. `json:FIELD` reads the whole output as one JSON value and,
 * if that has no such field, the last line. `jsonl:TYPE/FIELD` reads the last line whose `type` is TYPE and that has the field.
 */
export function printedText(field: string, printed: string): string | undefined {
  const [, type, path = ''] = PRINTED_FIELD.exec(field) ?? []
  const lines = printed.trimEnd().split('\n')
  if (type === undefined) return textAt(parsed(printed), path) ?? textAt(parsed(lines.at(-1) ?? ''), path)
  for (const line of lines.reverse()) {
    const value = line.includes(type) ? parsed(line) : undefined
    const text = textAt(value, 'type') === type ? textAt(value, path) : undefined
    if (text !== undefined) return text
  }
  return undefined
}

function textAt(value: unknown, path: string): string | undefined {
  const found = path
    .split('.')
    .reduce<unknown>((at, name) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined), value)
  return typeof found === 'string' ? found : undefined
}

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
