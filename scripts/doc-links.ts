/** `npm run docs:links`: checks that every relative link of a document leads to a file. If the link has an anchor, the file must have that heading. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { documents } from './site/documents.js'
import { deadLinks } from './site/dead-links.js'

process.chdir(fileURLToPath(new URL('../', import.meta.url)))

const texts = new Map(documents().map((file) => [file, readFileSync(file, 'utf8')]))
const found = deadLinks(texts, existsSync)
for (const problem of found.problems) console.error(`docs: ${problem}`)
console.log(`docs: ${found.count} links of ${texts.size} documents, ${found.problems.length} dead`)
process.exitCode = found.problems.length === 0 ? 0 : 1
