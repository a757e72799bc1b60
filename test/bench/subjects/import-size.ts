/** Prints every file that `import 'agent-tasks'` loads, and how large it is. */
import { readFileSync, statSync } from 'node:fs'
import { createRequire, Module } from 'node:module'
import { fileURLToPath } from 'node:url'

// Node's loader asks this for every source it compiles; what is CommonJS passes through `_extensions`.
const loaded = new Set<string>()
const commonJs = (Module as unknown as { _extensions: Record<string, (module: unknown, file: string) => void> })
  ._extensions
const original = commonJs['.js']
commonJs['.js'] = (module, file) => {
  loaded.add(file)
  original?.(module, file)
}

/** An import or an export, at the start of a line: examples in comments are indented by a star. */
const STATEMENT = /^(?:import|export)\b(?:[^'"`;]*?\bfrom)?\s*['"]([^'"]+)['"]/gm

/** Follows the static imports of an ES module; the files of this package and of its dependencies name them in plain text. */
function follow(file: string): void {
  if (loaded.has(file)) return
  loaded.add(file)
  const require = createRequire(file)
  for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(STATEMENT)) {
    if (name.startsWith('.')) follow(fileURLToPath(new URL(name, `file://${file}`)))
    else if (!name.startsWith('node:')) {
      try {
        follow(fileURLToPath(import.meta.resolve(name)))
      } catch {
        require(name)
      }
    }
  }
}

// The built package, by its name. TypeScript is not told, for it looks for the sources of this build.
const name: string = 'agent-tasks'
follow(fileURLToPath(import.meta.resolve(name)))
await import(name)
const files = [...loaded].map((file) => ({ file, bytes: statSync(file).size }))
const own = files.filter(({ file }) => !file.includes('node_modules'))
const sum = (some: typeof files): number => some.reduce((bytes, file) => bytes + file.bytes, 0)
const packages = new Set(files.flatMap(({ file }) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []))
console.log(
  JSON.stringify({
    own: { files: own.length, bytes: sum(own) },
    all: { files: files.length, bytes: sum(files) },
    packages: [...packages].sort(),
  }),
)
