/**
 * `npm run docs:options`: writes docs/options.md, docs/objects.md, docs/configuration.md and docs/errors.md from the sources. With `--check` it writes
 * nothing, and fails when a page is out of date. Both fail when a name has no description, or when a described default is not the default in the code.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { configurationPage } from './reference/configuration-page.js'
import { errorsPage } from './reference/errors-page.js'
import { objectsPage } from './reference/objects-page.js'
import { optionsPage } from './reference/options-page.js'

process.chdir(fileURLToPath(new URL('../', import.meta.url)))
const isCheck = process.argv.includes('--check')
const pages = {
  options: optionsPage(),
  objects: objectsPage(),
  configuration: configurationPage(),
  errors: errorsPage(),
}
const problems = Object.values(pages).flatMap((one) => one.problems)

for (const [name, { page }] of Object.entries(pages)) {
  const file = `docs/${name}.md`
  if (isCheck) {
    const present = existsSync(file) ? readFileSync(file, 'utf8') : ''
    if (present !== page) problems.push(`${file} is out of date; run npm run docs:options`)
  } else if (problems.length === 0) writeFileSync(file, page)
}
for (const problem of problems) console.error(`docs: ${problem}`)
if (problems.length === 0) console.log(`docs: the pages of options, objects, configuration and errors are up to date`)
process.exitCode = problems.length === 0 ? 0 : 1
