/**
 * Changes a file of another program's settings: JSON, possibly with comments. Only the entries of this package change. The file keeps its mode, its owner
 * and, if it is a link, its place. Nothing is left beside it.
 */
import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import jsonc from 'jsonc-parser'
import { AgentTasksError } from '../../errors.js'
import { openAtOnce } from '../../system/regular-file.js'
import type { HookEntry } from './hook-setup.js'
import { isOwnEntry } from './hook-setup.js'

const FORMATTING = { formattingOptions: { insertSpaces: true, tabSize: 2 } } as const

/** The maximum size of a file of settings, in bytes (16 MiB). */
const MAX_BYTES = 16 * 1024 * 1024

const refuse = (file: string, problem: string): never => {
  throw new AgentTasksError('INVALID_CONFIG', `${file}${problem}. Nothing was written.`)
}

/**
 * The text of a file; undefined if it does not exist. A repository may have put something else in its place, such as a link to a device.
 * @throws INVALID_CONFIG for something else than a file, a link without a target, and a file of more than 16 MiB
 */
export function readSettings(file: string): string | undefined {
  let descriptor: number
  try {
    descriptor = openAtOnce(file, { followsLinks: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    if (lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return undefined
    return refuse(file, ' is a link without a target')
  }
  try {
    const stats = fstatSync(descriptor)
    if (!stats.isFile()) return refuse(file, ' is not a regular file')
    if (stats.size > MAX_BYTES) return refuse(file, `: got ${stats.size} bytes, expected at most ${MAX_BYTES}`)
    return readFileSync(descriptor, 'utf8')
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Replaces a file with the result of `change`. Does nothing if that is the text that the file has; removes the file if it is undefined.
 * @returns whether the file has changed
 * @throws INVALID_CONFIG if somebody else changes the file at the same time, it is read-only, or it cannot be read (`readSettings`)
 */
export function changeFile(file: string, change: (text: string | undefined) => string | undefined): boolean {
  const before = readSettings(file)
  const after = change(before)
  if (after === before) return false
  const target = before === undefined ? file : realpathSync(file)
  // A rename would replace even a file that this user may not write.
  if (before !== undefined && !isWritable(target)) refuse(file, ' is read-only')
  const draft = `${target}.agent-tasks-${globalThis.crypto.randomUUID()}`
  const stats = before === undefined ? undefined : statSync(target)
  mkdirSync(dirname(target), { recursive: true })
  try {
    if (after !== undefined) {
      writeFileSync(draft, after, { mode: (stats?.mode ?? 0o600) & 0o777, flag: 'wx', flush: true })
      if (stats !== undefined && process.getuid?.() === 0) chownSync(draft, stats.uid, stats.gid)
    }
    if (readSettings(file) !== before) {
      throw new AgentTasksError(
        'INVALID_CONFIG',
        `${file} was changed at the same time. Nothing was written: try again.`,
      )
    }
    if (after === undefined) rmSync(target)
    else renameSync(draft, target)
  } finally {
    rmSync(draft, { force: true })
  }
  return true
}

function isWritable(file: string): boolean {
  try {
    accessSync(file, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Returns the settings with these entries in place of earlier ones of this package.
 * @throws INVALID_CONFIG if the text is not JSON, or has something else in the place of a list
 */
export function withEntries(file: string, text: string | undefined, entries: readonly HookEntry[]): string {
  let changed = withoutEntries(file, text) ?? '{}\n'
  for (const { path, value } of entries) {
    const list = valueAt(changed, path)
    if (list !== undefined && !Array.isArray(list)) return refuse(file, `: ${path.join('.')} is not a list`)
    const at = list === undefined ? [...path] : [...path, list.length]
    const edits = jsonc.modify(changed, at, list === undefined ? [value] : value, {
      ...FORMATTING,
      isArrayInsertion: list !== undefined,
    })
    changed = jsonc.applyEdits(changed, edits)
  }
  return changed
}

/**
 * Returns the settings without the entries of this package, and without the lists that are empty then. Undefined for no file.
 * @throws INVALID_CONFIG if the text is not JSON
 */
export function withoutEntries(file: string, text: string | undefined): string | undefined {
  if (text === undefined || text.trim() === '') return text
  checkJson(file, text)
  let changed = text
  const remove = (path: readonly (string | number)[]): void => {
    changed = jsonc.applyEdits(changed, jsonc.modify(changed, [...path], undefined, FORMATTING))
  }
  for (const [event, list] of Object.entries(Object(valueAt(text, ['hooks'])) as object)) {
    if (!Array.isArray(list)) continue
    const own = list.flatMap((value, index) => (isOwnEntry(value) ? [index] : []))
    for (const index of own.reverse()) remove(['hooks', event, index])
    if (own.length > 0 && own.length === list.length) remove(['hooks', event])
  }
  if (changed !== text && Object.keys(Object(valueAt(changed, ['hooks'])) as object).length === 0) remove(['hooks'])
  return changed
}

/** The entries of this package in the settings. */
export function ownEntries(file: string, text: string): readonly HookEntry[] {
  checkJson(file, text)
  return Object.entries(Object(valueAt(text, ['hooks'])) as Record<string, unknown>).flatMap(([event, list]) =>
    Array.isArray(list)
      ? list.filter(isOwnEntry).map((value): HookEntry => ({ path: ['hooks', event], value: value as object }))
      : [],
  )
}

function valueAt(text: string, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, name) =>
      Object.hasOwn(Object(value) as object, name) ? (value as Record<string, unknown>)[name] : undefined,
    jsonc.parse(text),
  )
}

function checkJson(file: string, text: string): void {
  const errors: jsonc.ParseError[] = []
  const root = treeOf(file, text, errors)
  const [error] = errors
  const line = error === undefined ? 1 : text.slice(0, error.offset).split('\n').length
  if (error !== undefined || root?.type !== 'object') refuse(file, `: line ${line}: expected a JSON object`)
  const hooks = membersOf(root).filter(({ name }) => name === 'hooks')
  if (hooks.some(({ value }) => value?.type !== 'object')) refuse(file, ': hooks is not an object')
  const names = hooks.flatMap(({ value }) => membersOf(value)).map(({ name }) => name)
  // Clients read the last one, and an edit would change the first one.
  if (hooks.length > 1 || new Set(names).size < names.length) refuse(file, ': hooks has a name twice')
}

function treeOf(file: string, text: string, errors: jsonc.ParseError[]): jsonc.Node | undefined {
  try {
    return jsonc.parseTree(text, errors, { allowTrailingComma: true })
  } catch (error) {
    if (error instanceof RangeError) return refuse(file, ': the JSON is nested too deep')
    throw error
  }
}

const membersOf = (object: jsonc.Node | undefined): { name: unknown; value: jsonc.Node | undefined }[] =>
  (object?.children ?? []).map(({ children: [name, value] = [] }) => ({ name: name?.value as unknown, value }))
