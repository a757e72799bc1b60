/**
 * `npm run docs:words`: counts the words of each document that is written by hand, and fails when there are more than 32,000 in total. Code blocks do
 * not count. Documents that are generated, and those that record decisions or changes, do not count either.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { documents } from './site/documents.js'
import { wordsOf } from './site/words.js'

const LIMIT = 32_000
/** Documents that are generated, and records of promises, decisions and changes. */
const uncounted =
  /^(docs\/(agents|guarantees|machines|tools|options|objects|configuration|errors)\.md|docs\/(adr|reference)\/.*|CHANGELOG\.md)$/

process.chdir(fileURLToPath(new URL('../', import.meta.url)))
const counted = documents().filter((file) => !uncounted.test(file))
const words = counted.map((file) => ({ file, count: wordsOf(readFileSync(file, 'utf8')) }))
words.sort((one, other) => other.count - one.count)
const total = words.reduce((sum, { count }) => sum + count, 0)

for (const { file, count } of words) console.log(`${String(count).padStart(6)}  ${file}`)
console.log(`${String(total).padStart(6)}  in all, of at most ${LIMIT}`)
process.exitCode = total > LIMIT ? 1 : 0
