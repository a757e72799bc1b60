/** The files of the built page and their sizes. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

/** The maximum size of the page, gzipped, in bytes. */
export const PAGE_LIMIT = 120_000

export interface PageFile {
  /** The path, relative to dist/page. */
  readonly path: string
  readonly bytes: number
  readonly gzipped: number
}

/** @throws Error when the page was not built */
export function pageFiles(directory = fileURLToPath(new URL('../../dist/page/', import.meta.url))): PageFile[] {
  const paths = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => `${parentPath}/${name}`.replaceAll('//', '/'))
  return paths.sort().map((path) => {
    const content = readFileSync(path)
    return { path: path.slice(directory.length), bytes: content.length, gzipped: gzipSync(content).length }
  })
}
