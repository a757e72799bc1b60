/**
 * Looks for a text in the transcript of a client. The path comes from the caller of a hook, so only a regular file inside the client's own folder of
 * transcripts is read, and of that only the end.
 */
import { lstatSync, realpathSync } from 'node:fs'
import { parseJson } from '../../data/parse-json.js'
import { isWithin, readRegular } from '../../system/regular-file.js'
import type { ClientProcess, HookClient } from './hook-client.js'

/** How much of a transcript is read, in bytes (8 MiB). */
const MAX_BYTES = 8 * 1024 * 1024

/** How deeply the JSON of a line may be nested. */
const MAX_DEPTH = 100

type Line = Readonly<Record<string, unknown>>

/** Whether a path is a transcript of the client. */
export function isTranscript(
  { transcripts }: HookClient,
  path: string | undefined,
  env: ClientProcess['env'],
): boolean {
  const folder = transcripts?.(env)
  return folder !== undefined && path !== undefined && isOwnFile(folder, path)
}

/** Whether a resumed conversation gives the model a text with this token, as its transcript says. */
export function isInTranscript(
  { transcripts, replayedText }: HookClient,
  path: string | undefined,
  token: string,
  env: ClientProcess['env'],
): boolean {
  const folder = transcripts?.(env)
  if (folder === undefined || replayedText === undefined || path === undefined) return false
  const text = isOwnFile(folder, path) ? (readRegular(path, MAX_BYTES, 'end') ?? '') : ''
  return text.split('\n').some((line) => {
    if (!line.includes(token)) return false
    const parsed = parseJson(line, MAX_DEPTH)
    return 'value' in parsed && textOf(replayedText(Object(parsed.value) as object as Line)).includes(token)
  })
}

const textOf = (value: unknown): string => JSON.stringify([value])

function isOwnFile(folder: string, path: string): boolean {
  try {
    return lstatSync(path).isFile() && isWithin(realpathSync(folder), realpathSync(path))
  } catch {
    return false
  }
}
