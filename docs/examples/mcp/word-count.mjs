/** A subagent without an agent CLI or an account: it counts the words of the files in its goal, which has one per line. */
import { readFile } from 'node:fs/promises'
import process from 'node:process'

const [goal = ''] = process.argv.slice(2)
const counts = {}
for (const file of goal
  .split('\n')
  .map((line) => line.trim())
  .filter(Boolean)) {
  const words = (await readFile(file, 'utf8')).split(/\s+/).filter(Boolean)
  counts[file] = words.length
  // The output can be read while it runs.
  console.log(`${file}: ${words.length} words`)
}
// The last line is its result: "output": "json-last-line".
console.log(JSON.stringify({ final_message: `Counted ${Object.keys(counts).length} file(s)`, emitted_vars: counts }))
