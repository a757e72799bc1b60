/** Readers for `npm run guarantees`: the rows of docs/guarantees.md, the test titles of a file, and the invariants in a machine's header. */
import ts from 'typescript'

/** A test that a row names: its file, from the project's root, and its exact title. */
type NamedTest = { file: string; title: string }

/** One row. `problems` lists the parts that cannot be read. */
export type PromiseRow = { invariant: string; line: number; tests: NamedTest[]; problems: string[] }

/** Returns the table rows of a Markdown text whose first cell is an invariant, such as `A1` or `T12`. */
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
