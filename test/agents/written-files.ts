/** The files below a folder, with what a reader wants to know about them. */
import { readdirSync, statSync } from 'node:fs'
import { join, relative, sep } from 'node:path'

export interface WrittenFile {
  readonly path: string
  /** The folder of a program below the root: `.claude`, `.config/opencode`, `.local/share/opencode`. */
  readonly folder: string
  readonly bytes: number
}

/** How many parts of a path name the folder of a program, by the first part. */
const DEPTHS: Readonly<Record<string, number>> = { '.config': 2, '.cache': 2, '.local': 3 }

export function writtenFiles(root: string): readonly WrittenFile[] {
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.map((entry) => {
    const path = join(entry.parentPath, entry.name)
    const parts = relative(root, path).split(sep)
    const folder = parts.slice(0, DEPTHS[parts[0] ?? ''] ?? 1).join('/')
    return { path, folder, bytes: statSync(path, { throwIfNoEntry: false })?.size ?? 0 }
  })
}
