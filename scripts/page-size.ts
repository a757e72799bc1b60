/** `npm run page-size`: prints the sizes of the page and of the extension. Fails when one of them is larger than its limit. */
import { statSync } from 'node:fs'
import { pageFiles, PAGE_LIMIT } from '../test/support/page-files.js'

const files = pageFiles()
for (const { path, bytes, gzipped } of files) console.log(`page: ${path}: ${bytes} bytes, ${gzipped} gzipped`)
const total = files.reduce((sum, { gzipped }) => sum + gzipped, 0)
console.log(`page: ${total} bytes gzipped of at most ${PAGE_LIMIT}`)
if (total > PAGE_LIMIT) {
  console.error(`page: FAILED: it is ${total - PAGE_LIMIT} bytes too large`)
  process.exitCode = 1
}

const ARCHIVE = 'dist/agent-tasks-extension.zip'
/** The maximum size of the extension's archive, in bytes. */
const ARCHIVE_LIMIT = 150_000
const { size } = statSync(ARCHIVE)
console.log(`extension: ${ARCHIVE}: ${size} bytes of at most ${ARCHIVE_LIMIT}`)
if (size > ARCHIVE_LIMIT) {
  console.error(`extension: FAILED: it is ${size - ARCHIVE_LIMIT} bytes too large`)
  process.exitCode = 1
}
