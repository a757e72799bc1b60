/** The package under test, as its users import it: the entry points of a build. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

interface EntryPoints {
  '.': typeof import('agent-tasks')
  './bullmq': typeof import('agent-tasks/bullmq')
  './machines': typeof import('agent-tasks/machines')
  './page': typeof import('agent-tasks/page')
  './postgres': typeof import('agent-tasks/postgres')
  './server': typeof import('agent-tasks/server')
  './store': typeof import('agent-tasks/store')
  './testing': typeof import('agent-tasks/testing')
}

interface Manifest {
  readonly exports: Readonly<Record<keyof EntryPoints, { readonly default: string }>>
}

/** The file of an entry point. @param checkout a directory in which `npm run build` has run */
export function entryUrl(checkout: string, path: keyof EntryPoints): string {
  const { exports } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as Manifest
  return pathToFileURL(join(checkout, exports[path].default)).href
}

export async function importEntry<Path extends keyof EntryPoints>(
  checkout: string,
  path: Path,
): Promise<EntryPoints[Path]> {
  return (await import(entryUrl(checkout, path))) as EntryPoints[Path]
}
