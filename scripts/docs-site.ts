/**
 * `npm run docs:site [-- --serve] [--no-api] [--out FOLDER] [--base /PATH/]`: builds the documentation site in reports/site. Dead links fail the build.
 * It generates the API reference first; `--no-api` leaves the reference out. With `--serve` it then serves the site on this machine, until Ctrl-C.
 */
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from 'vitepress'
import { WITHOUT_API } from './site/pages.js'
import { serveFolder } from './site/serve-folder.js'

const { values } = parseArgs({
  options: {
    serve: { type: 'boolean', default: false },
    'no-api': { type: 'boolean', default: false },
    out: { type: 'string', default: 'reports/site' },
    base: { type: 'string', default: '/' },
  },
})
process.chdir(fileURLToPath(new URL('../', import.meta.url)))

// Set as an environment variable, because the configuration of VitePress takes no arguments.
if (values['no-api']) process.env[WITHOUT_API] = '1'
else {
  const { status } = spawnSync('npm', ['run', '--silent', 'docs:api', '--', '--logLevel', 'Warn'], { stdio: 'inherit' })
  if (status !== 0) process.exit(1)
}
const outDir = resolve(values.out)
await build('docs', { outDir, base: values.base })
console.log(
  values.serve
    ? `docs: ${(await serveFolder(outDir)).url}`
    : `docs: the site is in ${values.out}. To open it, run npm run docs:site -- --serve`,
)
