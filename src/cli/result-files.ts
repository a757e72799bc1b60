/** Writes images and other binary content that commands return to files, because a terminal cannot show them. */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface ResultFiles {
  /** Writes the bytes of a content block to a new file and returns its path. Returns undefined for content without bytes. */
  save(part: unknown): Promise<string | undefined>
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'audio/wav': 'wav',
  'audio/mpeg': 'mp3',
  'application/pdf': 'pdf',
}

/** @param name the prefix of the file names, such as the id of a task; only its letters, digits and underscores are used */
export function createResultFiles(name: string): ResultFiles {
  let folder: Promise<string> | undefined
  let count = 0
  return {
    save: async (part) => {
      const { data, mimeType } = Object(part) as { readonly data?: unknown; readonly mimeType?: unknown }
      if (typeof data !== 'string' || typeof mimeType !== 'string') return undefined
      // mkdtemp creates a folder that only this user can read.
      folder ??= mkdtemp(join(tmpdir(), 'agent-tasks-'))
      count += 1
      const extension = Object.hasOwn(EXTENSIONS, mimeType) ? EXTENSIONS[mimeType] : 'bin'
      const path = join(await folder, `${name.replace(/\W/g, '').slice(0, 64)}-${count}.${extension}`)
      await writeFile(path, Buffer.from(data, 'base64'), { mode: 0o600 })
      return path
    },
  }
}
