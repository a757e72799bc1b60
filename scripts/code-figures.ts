/**
 * `npm run figures [-- DIR …]`: prints figures of the code, such as its size and how often it uses a pattern. It compares this checkout with those in
 * other folders, for example before and after a redesign.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Source {
  readonly path: string
  readonly text: string
  readonly lines: number
}

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0

/** Matches the spread of an object literal, such as `...{ a, b }`, also over several lines. */
const LITERAL_SPREAD = /\.\.\.\{/g
const CONDITIONAL_SPREAD = /\.\.\.\((?:[^()]|\([^()]*\))*&&/g
const STATUS_LITERAL = /'(?:queued|running|completed|failed|cancelled)'/

function sourcesOf(checkout: string): Source[] {
  const listed = execFileSync('git', ['ls-files', 'src', 'machines', 'test', 'docs', 'scripts'], {
    cwd: checkout,
    encoding: 'utf8',
  })
  return listed
    .split('\n')
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => {
      const text = readFileSync(join(checkout, path), 'utf8')
      return { path, text, lines: text.split('\n').length - 1 }
    })
}

function linesByFolder(sources: readonly Source[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const { path, lines } of sources) {
    const [top = '', second = ''] = path.split('/')
    const name = top === 'src' ? (second.includes('.') ? 'src/*.ts' : `src/${second}`) : top
    sums.set(name, (sums.get(name) ?? 0) + lines)
  }
  return sums
}

/** Counts the public members of a class: methods, accessors, and fields that are not `#private`. It finds them by their indentation. */
function membersOf(text: string, name: string): number {
  const body = new RegExp(`export class ${name}\\b[\\s\\S]*?\\n}\\n`).exec(text)?.[0] ?? ''
  const member = /^ {2}(?:readonly |override |async |get |set |static )*([a-zA-Z]\w*)(?:[?!]?[:=(<]| =|\$)/gm
  return new Set([...body.matchAll(member)].map(([, found]) => found).filter((found) => found !== 'constructor')).size
}

function figuresOf(checkout: string): Map<string, string> {
  const sources = sourcesOf(checkout)
  const own = sources.filter(({ path }) => /^(?:src|machines)\//.test(path))
  const sum = (list: readonly Source[], measure: (source: Source) => number): number =>
    list.reduce((total, source) => total + measure(source), 0)
  const registry = sources.find(({ path }) => path.endsWith('/registry.ts'))
  const top = execFileSync('git', ['ls-tree', '--name-only', 'HEAD'], { cwd: checkout, encoding: 'utf8' })
  const rows = new Map<string, string>()
  const row = (name: string, value: number | string): void => void rows.set(name, String(value))
  for (const [folder, lines] of [...linesByFolder(sources)].sort()) row(`lines in ${folder}`, lines)
  row(
    'lines in src and machines',
    sum(own, ({ lines }) => lines),
  )
  const largest = [...own].sort((a, b) => b.lines - a.lines).slice(0, 10)
  largest.forEach(({ path, lines }, index) => row(`largest file ${index + 1}`, `${path} ${lines}`))
  row('members of TaskRegistry', registry === undefined ? '-' : membersOf(registry.text, 'TaskRegistry'))
  row('files with a literal of a status', own.filter(({ text }) => STATUS_LITERAL.test(text)).length)
  row(
    'literal spreads in src and machines',
    sum(own, ({ text }) => count(text, LITERAL_SPREAD)),
  )
  row(
    'literal spreads in all',
    sum(sources, ({ text }) => count(text, LITERAL_SPREAD)),
  )
  row(
    'conditional spreads in src and machines',
    sum(own, ({ text }) => count(text, CONDITIONAL_SPREAD)),
  )
  row('entries at the top level', top.trim().split('\n').length)
  return rows
}

const checkouts = ['.', ...process.argv.slice(2)]
const figures = checkouts.map(figuresOf)
const names = [...new Set(figures.flatMap((each) => [...each.keys()]))]
console.log(`| figure | ${checkouts.join(' | ')} |\n|---|${checkouts.map(() => '---|').join('')}`)
for (const name of names) console.log(`| ${name} | ${figures.map((each) => each.get(name) ?? '').join(' | ')} |`)
