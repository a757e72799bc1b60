/**
 * The second half of `npm run build`: each entry point of the package in one file, and what several share in `dist/chunks`
 * (docs/adr/0016). The declarations, from tsc, stay one for each source.
 */
import { readFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { rolldown } from 'rolldown'

interface Manifest {
  readonly bin: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>
}

const { bin, exports } = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest
const published = Object.values(exports).flatMap((target) => (typeof target === 'string' ? [] : [target.default]))
/** Not a subpath: for a host that starts it by its path. */
const programs = [...Object.values(bin), 'dist/src/cli/mcp.js']
const entries = [...published, ...programs].map((file) => file.replace(/^(?:\.\/)?dist\//, '').replace(/\.js$/, ''))

const bundle = await rolldown({
  input: Object.fromEntries(entries.map((entry) => [entry, `./${entry}.ts`])),
  platform: 'neutral',
  // Packages stay packages, so that a host and this one have the same XState.
  external: (id) => !id.startsWith('.') && !isAbsolute(id),
  onLog: (level, { message }) => {
    if (level === 'warn') throw new Error(message)
  },
})
await bundle.write({
  dir: 'dist',
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: 'chunks/[name].js',
  sourcemap: true,
  minifyInternalExports: false,
})
await bundle.close()
