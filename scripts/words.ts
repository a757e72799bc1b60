/**
 * `npm run words`: fails if it finds words that make a sentence hard to read. It looks in the comments and texts of src and machines, and in the prose
 * of README.md, CONTRIBUTING.md and docs. The list is in scripts/word-list.ts, with the texts that may contain such words.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { documents } from './site/documents.js'
import { describeFound, findWords } from './word-list.js'

process.chdir(fileURLToPath(new URL('../', import.meta.url)))

const files = [
  ...documents().filter((file) => file !== 'CHANGELOG.md'),
  ...list('src', /\.(?:tsx?|css|html)$/),
  ...list('machines', /\.ts$/),
]
const found = files.flatMap((file) => findWords(file, readFileSync(file, 'utf8')))
for (const word of found) console.error(`words: ${describeFound(word)}`)
console.log(`words: ${files.length} files, ${found.length} refused words`)
if (found.length > 0) process.exitCode = 1

function list(folder: string, name: RegExp): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => name.test(path))
    .map((path) => join(folder, path))
    .sort()
}
