/**
 * `npm run guarantees`: checks that every guarantee of docs/guarantees.md names tests that exist, and that every invariant has a guarantee.
 *
 * Some invariants are those of the whole package: A1 to A10 (async tasks), S1 to S11 (command tasks), K1 to K13 (stores), F1 to F23 (what agents ask),
 * H1 to H9 (handles and turns of a host), G1 to G4 (the page), W1 to W6 (workers), N1 to N7 (instances behind any node), E1 to E5 (the browser
 * extension), U1 to U4 (continued tasks, agents, worktrees) and P1 to P3 (MCP clients). The others are defined in the header comments of machines/.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readDefinedInvariants, readRows, readTestTitles, type TestTitles } from '../test/support/promises.js'

const page = 'docs/guarantees.md'
const packageWide = [
  ...Object.entries({ A: 10, S: 11, K: 13, F: 23, H: 9, G: 4, W: 6, N: 7, E: 5, U: 4, P: 3 }).flatMap(
    ([letter, length]) => Array.from({ length }, (_, index) => `${letter}${index + 1}`),
  ),
]

process.chdir(fileURLToPath(new URL('../', import.meta.url)))

if (!existsSync(page)) {
  console.error(`guarantees: ${page} does not exist`)
  process.exit(1)
}

const problems: string[] = []
const definedBy = invariantsWithTheirHome()
const rows = readRows(readFileSync(page, 'utf8'))

const titlesByFile = new Map<string, TestTitles>()
const lineByInvariant = new Map<string, number>()
for (const { invariant, line, tests, problems: unreadable } of rows) {
  const say = (problem: string) => problems.push(`${page}:${line}: ${invariant} ${problem}`)
  const earlier = lineByInvariant.get(invariant)
  if (earlier === undefined) lineByInvariant.set(invariant, line)
  else say(`has a row already, in line ${earlier}`)
  if (!definedBy.has(invariant)) {
    say(
      'is defined nowhere: not one of A1 to A10, S1 to S11, K1 to K13, F1 to F23, H1 to H9, G1 to G4, W1 to W6, N1 to N7, E1 to E5, U1 to U4 or P1 to P4, and in no header of machines/',
    )
  }
  unreadable.forEach(say)
  for (const { file, title } of tests) {
    const problem = problemWithTest(file, title)
    if (problem !== undefined) say(problem)
  }
}
for (const [invariant, home] of definedBy) {
  if (!lineByInvariant.has(invariant)) problems.push(`${page}: ${invariant} has no row; ${home} defines it`)
}

if (problems.length > 0) {
  console.error(problems.join('\n'))
  console.error(`guarantees: ${problems.length} problems`)
  process.exitCode = 1
} else {
  const named = rows.reduce((sum, row) => sum + row.tests.length, 0)
  console.log(`guarantees: ${rows.length} invariants, ${named} named tests, all there`)
}

function invariantsWithTheirHome(): Map<string, string> {
  const homes = new Map(packageWide.map((invariant) => [invariant, 'the package']))
  for (const name of readdirSync('machines').filter((file) => file.endsWith('.ts'))) {
    const file = `machines/${name}`
    for (const invariant of readDefinedInvariants(readFileSync(file, 'utf8'))) {
      const home = homes.get(invariant)
      // A header may explain how its machine keeps an invariant of the whole package. That does not define the invariant a second time.
      if (home === undefined) homes.set(invariant, file)
      else if (home !== 'the package') problems.push(`${file}: defines ${invariant}, which ${home} defines already`)
    }
  }
  return homes
}

function problemWithTest(file: string, title: string): string | undefined {
  if (!existsSync(file)) return `names ${file}, which does not exist`
  const titles = titlesByFile.get(file) ?? readTestTitles(readFileSync(file, 'utf8'), file)
  titlesByFile.set(file, titles)
  if (titles.running.has(title)) return undefined
  if (titles.idle.has(title)) return `names a test that is skipped or expected to fail: ${file} › ${title}`
  return `names a test that is not in ${file}: ${title}`
}
