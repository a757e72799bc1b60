/** What the hosts of `npm run stops` write down, one JSON value in each line of a file. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What each file contains. `life` is the number of the process, from 0. */
export interface Notes {
  /** A task whose launch is stored. */
  readonly launches: { readonly id: string }
  /** The begin of an attempt. */
  readonly begins: { readonly life: number; readonly id: string; readonly attempt: number }
  /** What a process has found in the store: ids of tasks by the list that they are in. */
  readonly found: { readonly life: number } & Readonly<
    Record<'adopted' | 'queued' | 'retried' | 'interrupted', string[]>
  >
  /** A message to the agent, which its host has written into the transcript. */
  readonly transcript: {
    readonly life: number
    readonly deliveryId: string
    readonly tasks: readonly { readonly id: string; readonly status: string; readonly text: string }[]
    /** Each is the id of its task and its own, with a space between them. */
    readonly questions: readonly string[]
  }
}

export function note<File extends keyof Notes>(folder: string, file: File, line: Notes[File]): void {
  appendFileSync(join(folder, file), `${JSON.stringify(line)}\n`)
}

export function notesOf<File extends keyof Notes>(folder: string, file: File): readonly Notes[File][] {
  return linesOf(folder, file).map((line) => JSON.parse(line) as Notes[File])
}

/** The lines of a file; none if it does not exist. */
export function linesOf(folder: string, file: string): readonly string[] {
  const path = join(folder, file)
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
}
