/** Readers for `npm run guarantees`: the guarantees of docs/guarantees.md, the test titles of a file, and the invariants in a machine's header. */
import ts from 'typescript'

/** A test that a guarantee names: its file, from the project's root, and its exact title. */
type NamedTest = { file: string; title: string }

/** A guarantee with its tests. `problems` lists what is missing or cannot be read. */
export type PromiseRow = { invariant: string; line: number; tests: NamedTest[]; problems: string[] }

/** The tests below the heading of an invariant, and the files that it names. */
type TestList = Pick<PromiseRow, 'line' | 'tests' | 'problems'> & { files: string[] }

/**
 * The guarantees of a Markdown text. A guarantee is a table row whose first cell is an invariant, such as `A1`, linked to the heading of its tests.
 * Below that heading, each list item is a file, and its items are the titles of tests.
 */
export function readRows(markdown: string): PromiseRow[] {
  const lines = markdown.split('\n')
  const lists = readTestLists(lines)
  const rows = lines.flatMap((text, index) => {
    const cells = tableCells(text)
    const invariant = /^\[?([A-Z]+\d+)\b/.exec(cells[0] ?? '')?.[1]
    return invariant === undefined ? [] : [readRow(invariant, index + 1, cells, lists.get(invariant))]
  })
  for (const [invariant, { line }] of lists) {
    if (rows.some((row) => row.invariant === invariant)) continue
    rows.push({ invariant, line, tests: [], problems: ['has tests, but no row with its promise'] })
  }
  return rows
}

function readRow(invariant: string, line: number, cells: string[], list: TestList | undefined): PromiseRow {
  const problems = [...(list?.problems ?? [])]
  if (cells.length !== 2) problems.push(`has ${cells.length} cells, not 2: invariant, promise`)
  if (cells[0] !== `[${invariant}](#${invariant.toLowerCase()})`) {
    problems.push('is not a link to the heading of its tests')
  }
  if ((cells[1] ?? '') === '') problems.push('has no promise in words')
  if (list === undefined || list.tests.length === 0) problems.push('names no test')
  const empty = list?.files.filter((file) => !list.tests.some((test) => test.file === file)) ?? []
  problems.push(...empty.map((file) => `names no test of ${file}`))
  return { invariant, line, tests: list?.tests ?? [], problems }
}

function readTestLists(lines: readonly string[]): Map<string, TestList> {
  const lists = new Map<string, TestList>()
  let list: TestList | undefined
  let file: string | undefined
  for (const [index, text] of lines.entries()) {
    if (text.startsWith('#')) {
      const invariant = /^#+ ([A-Z]+\d+)$/.exec(text)?.[1]
      const earlier = invariant === undefined ? undefined : lists.get(invariant)
      earlier?.problems.push(`has a second list of tests, in line ${index + 1}`)
      list = invariant === undefined ? undefined : (earlier ?? { line: index + 1, tests: [], problems: [], files: [] })
      if (invariant !== undefined && list !== undefined) lists.set(invariant, list)
      file = undefined
    } else if (list !== undefined && text.trim() !== '') {
      const [, named] = /^- `([^`]+)`$/.exec(text) ?? []
      const [, title] = /^ {2}- (.+)$/.exec(text) ?? []
      if (named !== undefined) {
        file = named
        list.files.push(named)
      } else if (title !== undefined && file !== undefined) list.tests.push({ file, title })
      else list.problems.push(`has a line that is neither a file nor a title below one: ${text}`)
    }
  }
  return lists
}

function tableCells(text: string): string[] {
  const trimmed = text.trim()
  if (!trimmed.startsWith('|')) return []
  const cells = trimmed.slice(1).split(/(?<!\\)\|/)
  if (trimmed.endsWith('|')) cells.pop()
  return cells.map((cell) => cell.trim().replaceAll('\\|', '|'))
}

/** The titles in a test file. `running`: of tests that run. `idle`: of tests that are skipped, to do, or expected to fail. */
export type TestTitles = { running: Set<string>; idle: Set<string> }

const vitestNames = ['it', 'test', 'describe', 'suite']
const idling = new Set(['skip', 'todo', 'fails'])

/**
 * Reads the titles that are string literals in calls of `it`, `test` and `describe`, including `it.prop(…)(…)`, `it.each(…)(…)` and
 * renamed imports. Tests inside a skipped `describe` do not run either.
 */
export function readTestTitles(source: string, fileName = 'a.test.ts'): TestTitles {
  const titles: TestTitles = { running: new Set(), idle: new Set() }
  const registrars = new Set(vitestNames)
  visit(ts.createSourceFile(fileName, source, ts.ScriptTarget.Latest, true), false)
  return titles

  function visit(node: ts.Node, insideIdle: boolean): void {
    learnAnotherName(node)
    const modifiers = ts.isCallExpression(node) ? modifiersOf(node.expression) : undefined
    const idle = insideIdle || (modifiers?.some((name) => idling.has(name)) ?? false)
    if (modifiers && ts.isCallExpression(node)) {
      const [title] = node.arguments
      if (title && ts.isStringLiteralLike(title)) titles[idle ? 'idle' : 'running'].add(title.text)
    }
    ts.forEachChild(node, (child) => visit(child, idle))
  }

  /** Reads `import { it as property }` and `const raced = it.extend(…)`. */
  function learnAnotherName(node: ts.Node): void {
    const renamed = ts.isImportSpecifier(node) && registrars.has((node.propertyName ?? node.name).text)
    const derived = ts.isVariableDeclaration(node) && node.initializer && modifiersOf(node.initializer)
    if ((renamed || derived) && ts.isIdentifier(node.name)) registrars.add(node.name.text)
  }

  /** The names after `it` in a callee such as `it.concurrent.prop([…])`; undefined if the callee does not register a test. */
  function modifiersOf(callee: ts.Expression): string[] | undefined {
    if (ts.isIdentifier(callee)) return registrars.has(callee.text) ? [] : undefined
    if (ts.isCallExpression(callee)) return modifiersOf(callee.expression)
    if (ts.isTaggedTemplateExpression(callee)) return modifiersOf(callee.tag)
    if (!ts.isPropertyAccessExpression(callee)) return undefined
    const before = modifiersOf(callee.expression)
    return before && [...before, callee.name.text]
  }
}

/** Returns the invariants that a machine's header comment defines, in lines of the form ` * T1  text`. */
export function readDefinedInvariants(source: string): string[] {
  const header = /^\s*\/\*[\s\S]*?\*\//.exec(source)?.[0] ?? ''
  return [...header.matchAll(/^\s*\*\s+([A-Z]+\d+)[.:]?\s+\S/gm)].flatMap(([, invariant]) => invariant ?? [])
}
