/** Resolves `agent-tasks` and its subpaths to their sources, so that tests and examples can import the package by its name without a build. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

type Manifest = { name: string; exports: Record<string, string | { default: string }> }

/** Returns an alias for each subpath in the `exports` of package.json that is a built module. */
export function sourceAliases(): { find: RegExp; replacement: string }[] {
  const root = new URL('../../', import.meta.url)
  const { name, exports } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as Manifest
  return Object.entries(exports).flatMap(([subpath, target]) => {
    if (typeof target === 'string') return []
    const source = target.default.replace(/^\.\/dist\//, './').replace(/\.js$/, '.ts')
    return [{ find: new RegExp(`^${name}${subpath.slice(1)}$`), replacement: fileURLToPath(new URL(source, root)) }]
  })
}
