/**
 * Reads the three sides of a guarantee: the rows of docs/guarantees.md, the titles of the tests in a file, and the
 * invariants that the header of a machine defines.
 */
import ts from 'typescript'

/** A test that a row names: the file from the project's root, and the test's exact title. */
type NamedTest = { file: string; title: string }

/** One row of the table. `problems` says what in the row cannot be read. */
export type PromiseRow = { invariant: string; line: number; tests: NamedTest[]; problems: string[] }

/** The rows of every table in a markdown text whose first cell is an invariant, such as `A1` or `T12`. */
export function readRows(markdown: string): PromiseRow[] {
  return markdown.split('\n').flatMap((text, index) => {
    const cells = tableCells(text)
    const invariant = (cells[0] ?? '').replace(/^[*`]+|[*`]+$/g, '')
    return /^[A-Z]+\d+$/.test(invariant) ? [readRow(invariant, index + 1, cells)] : []
  })
}

function readRow(invariant: string, line: number, cells: string[]): PromiseRow {
  const row: PromiseRow = { invariant, line, tests: [], problems: [] }
  if (cells.length !== 3) row.problems.push(`has ${cells.length} cells, not 3: invariant, promise, tests`)
  if ((cells[1] ?? '') === '') row.problems.push('has no promise in words')
  for (const named of (cells[2] ?? '').split(/<br\s*\/?>/).map((part) => part.trim())) {
    const [, file, title] = /^`([^`]+)`\s*›\s*(.+)$/.exec(named) ?? []
    if (file !== undefined && title !== undefined) row.tests.push({ file, title })
    else if (named === '') row.problems.push('names no test')
    else row.problems.push(`has a test that is not written as \`file\` › title: ${named}`)
  }
  return row
}

function tableCells(text: string): string[] {
  const trimmed = text.trim()
  if (!trimmed.startsWith('|')) return []
  const cells = trimmed.slice(1).split(/(?<!\\)\|/)
  if (trimmed.endsWith('|')) cells.pop()
  return cells.map((cell) => cell.trim().replaceAll('\\|', '|'))
}

/** What a test file holds: the titles of what runs, and of what is skipped, to do, or expected to fail. */
export type TestTitles = { running: Set<string>; idle: Set<string> }

const vitestNames = ['it', 'test', 'describe', 'suite']
const idling = new Set(['skip', 'todo', 'fails'])

/**
 * The titles given as plain string literals to `it`, `test` and `describe`, also through `it.prop(…)(…)`, `it.each(…)(…)`
 * and the like, and under another name that the file gave them. What stands inside an idle `describe` is idle as well.
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

  /** Takes in `import { it as property }` and `const raced = it.extend(…)`. */
  function learnAnotherName(node: ts.Node): void {
    const renamed = ts.isImportSpecifier(node) && registrars.has((node.propertyName ?? node.name).text)
    const derived = ts.isVariableDeclaration(node) && node.initializer && modifiersOf(node.initializer)
    if ((renamed || derived) && ts.isIdentifier(node.name)) registrars.add(node.name.text)
  }

  /** The names after `it` in a callee such as `it.concurrent.prop([…])`; undefined when the callee registers no test. */
  function modifiersOf(callee: ts.Expression): string[] | undefined {
    if (ts.isIdentifier(callee)) return registrars.has(callee.text) ? [] : undefined
    if (ts.isCallExpression(callee)) return modifiersOf(callee.expression)
    if (ts.isTaggedTemplateExpression(callee)) return modifiersOf(callee.tag)
    if (!ts.isPropertyAccessExpression(callee)) return undefined
    const before = modifiersOf(callee.expression)
    return before && [...before, callee.name.text]
  }
}

/** The invariants that a machine's header comment defines: its lines of the form ` * T1  text`. */
export function readDefinedInvariants(source: string): string[] {
  const header = /^\s*\/\*[\s\S]*?\*\//.exec(source)?.[0] ?? ''
  return [...header.matchAll(/^\s*\*\s+([A-Z]+\d+)[.:]?\s+\S/gm)].flatMap(([, invariant]) => invariant ?? [])
}
