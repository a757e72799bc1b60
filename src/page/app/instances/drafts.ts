/** The commands of a new command task while a person edits them. */
import type { SubmitRequest } from '../../wire.js'
import { contentOf, type Entries, type FieldErrors } from '../forms/form-content.js'
import type { FormField } from '../forms/form-fields.js'

export interface Draft {
  /** The same id after the command was moved. */
  readonly id: number
  readonly tool: string
  readonly entries: Entries
}

/** Adds a command with the same tool as the last command, because the next command is often similar. */
export function withAnother(drafts: readonly Draft[], firstTool: string): readonly Draft[] {
  const id = Math.max(0, ...drafts.map((draft) => draft.id)) + 1
  return [...drafts, { id, tool: drafts.at(-1)?.tool ?? firstTool, entries: {} }]
}

/** @param by the number of places to move down; negative to move up. A move beyond an end of the list has no effect */
export function withMoved(drafts: readonly Draft[], id: number, by: number): readonly Draft[] {
  const from = drafts.findIndex((draft) => draft.id === id)
  const [moved, to] = [drafts[from], from + by]
  if (moved === undefined || to < 0 || to >= drafts.length) return drafts
  return drafts.toSpliced(from, 1).toSpliced(to, 0, moved)
}

/** Changes one command. A change of the tool must also empty the entries, because another tool has other fields. */
export function withChanged(
  drafts: readonly Draft[],
  id: number,
  change: Partial<Omit<Draft, 'id'>>,
): readonly Draft[] {
  return drafts.map((draft) => (draft.id === id ? { ...draft, ...change } : draft))
}

export type Checked =
  | { readonly request: SubmitRequest; readonly errors?: undefined }
  /** The errors by command id. Commands without errors are absent. */
  | { readonly request?: undefined; readonly errors: ReadonlyMap<number, FieldErrors> }

/** @param name the name of the task; empty for the default name */
export function requestOf(
  name: string,
  drafts: readonly Draft[],
  fieldsOf: (tool: string) => readonly FormField[],
): Checked {
  const errors = new Map<number, FieldErrors>()
  const commands: SubmitRequest['commands'][number][] = []
  for (const { id, tool, entries } of drafts) {
    const { content, errors: wrong } = contentOf(fieldsOf(tool), entries)
    if (content) commands.push({ tool, args: content })
    else errors.set(id, wrong)
  }
  const trimmed = name.trim()
  return errors.size > 0 ? { errors } : { request: { commands, ...(trimmed !== '' && { name: trimmed }) } }
}

/** The part of the form that a server error is about. */
export type ErrorPlace =
  | { readonly type: 'name' }
  /** `path` is the wrong argument. It is empty if the error is about the tool or about all arguments. */
  | { readonly type: 'command'; readonly id: number; readonly path: string }
  | { readonly type: 'all' }

/**
 * @param field the path of the wrong field in the request
 * @param sent the commands as they were sent
 */
export function placeOf(field: string | undefined, sent: readonly Draft[]): ErrorPlace {
  if (field === 'name') return { type: 'name' }
  const [, index, path = ''] = /^commands\.(\d+)(?:\.args\.(.+)|\.|$)/s.exec(field ?? '') ?? []
  const draft = index === undefined ? undefined : sent[Number(index)]
  return draft ? { type: 'command', id: draft.id, path } : { type: 'all' }
}
