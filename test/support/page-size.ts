/** `npm run page-size`: prints the size of each file of dist/page, and fails when all together have more than the page may. */
import { pageFiles, PAGE_LIMIT } from './page-files.js'

const files = pageFiles()
for (const { path, bytes, gzipped } of files) console.log(`page: ${path}: ${bytes} bytes, ${gzipped} gzipped`)
const total = files.reduce((sum, { gzipped }) => sum + gzipped, 0)
console.log(`page: ${total} bytes gzipped of at most ${PAGE_LIMIT}`)
if (total > PAGE_LIMIT) {
  console.error(`page: FAILED: it is ${total - PAGE_LIMIT} bytes too large`)
  process.exitCode = 1
}
