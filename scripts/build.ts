/**
 * The second half of `npm run build`: bundles each entry point into one file. Code that entry points share is in `dist/chunks` (docs/adr/0016). The
 * declarations are not bundled: `tsc` emits one for each source file.
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
const entries = [...published, ...Object.values(bin)].map((file) =>
  file.replace(/^(?:\.\/)?dist\//, '').replace(/\.js$/, ''),
)

const bundle = await rolldown({
  input: Object.fromEntries(entries.map((entry) => [entry, `./${entry}.ts`])),
  platform: 'neutral',
  // Dependencies are not bundled, so that the host and this package share one XState.
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
