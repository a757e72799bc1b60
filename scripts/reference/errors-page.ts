/** Makes docs/errors.md: every error code of the sources, with its meaning and, if it is public, its class. */
import { readdirSync, readFileSync } from 'node:fs'
import ts from 'typescript'
import { commentOf, itemsOf, sourceOf, visit } from './source.js'
import { table } from './table.js'

const BASE = 'AgentTasksError'
const REPORTS = 'docs/reference/api-report'
/** The source files. Those of the browser extension are left out, because its errors become results of its tools and are not thrown to users. */
const folders = ['src', 'machines'].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !/^(extension|page\/app)\//.test(file))
    .map((file) => `${folder}/${file}`)
    .sort(),
)

const intro = `# Errors

<!-- Made by \`npm run docs:options\` from the sources. Change the comments there and run it again. -->

Every error that this package throws is an \`${BASE}\` with a stable \`code\`. Compare \`code\`: messages may change. Some errors have one of the fields \`field\`, \`taskId\`,
\`owner\`, \`instanceId\` and \`pid\`, and some have a class with more fields. An error of a tool or of a server has the code that the tool or the server sent. In a task that failed, \`errorCode\` of the record has the code of what its run threw.`

/** Returns the page, and a problem for each error without a description. */
export function errorsPage(): { readonly page: string; readonly problems: readonly string[] } {
  const problems: string[] = []
  const classes = rowsOf(folders.flatMap((file) => classesOf(file, problems)))
  const named = new Set(classes.flatMap(([codes = '']) => [...codes.matchAll(/`([A-Z_]+)`/g)].map(([, code]) => code)))
  const others = folders.flatMap(thrownCodes).filter(([code = '']) => !named.has(code.replaceAll('`', '')))
  const lists = [
    ['src/protocol/client-messages.ts', 'errorCodes'],
    ['src/protocol/command-tasks.ts', 'submitErrorCodes'],
  ] as const
  const [answers, submissions] = lists.map(([file, name]) =>
    itemsOf(file, name).map((item) => {
      if (item.text === '') problems.push(`${file}: the code ${item.name} has no comment`)
      return [`\`${item.name}\``, item.text]
    }),
  )
  const listed = [...classes, ...others, ...(answers ?? []), ...(submissions ?? [])].flatMap(([codes = '']) =>
    [...codes.matchAll(/`([A-Z_]+)`/g)].map(([, code = '']) => code),
  )
  problems.push(...missingCodes(new Set(listed)))
  const page = [
    intro,
    '## Codes',
    table(['code', 'class', 'meaning'], classes.sort(byFirst)),
    '## Further codes',
    `Each with its messages and the folder of \`src/\` that throws them. A part that varies is shown as …, and \` / \` separates the messages of one code. If the whole message varies, the row says what it contains.`,
    table(['code', 'folder', 'message'], merged(others).map(withMeaning).sort(byFirst)),
    '## Answers of the task server',
    'The codes of `error` messages on a WebSocket. REST uses them as well; [the protocol](protocol.md) has their statuses, and the codes that only REST has.',
    table(['code', 'meaning'], answers ?? []),
    '## Refused submissions',
    'The codes of `submitTask`, of `task_submit_response` and of `POST /tasks`.',
    table(['code', 'meaning'], submissions ?? []),
  ]
  return { page: `${page.join('\n\n')}\n`, problems }
}

/** What the messages say that vary as a whole, by code. */
const MEANINGS: Readonly<Record<string, string>> = {
  PACKAGES_MISSING: 'names the optional package that is not installed, and the command that installs it',
  REDIS_UNUSABLE: 'names the Redis, and says why it cannot be used',
  RUN_UNTIL_FAILED: 'names the state or event that did not come, says why, and lists what was seen instead',
  TOO_MANY_REGISTRATIONS:
    'says that too many registered workers have not connected, or that the store has no room for another one',
}

const withMeaning = ([code = '', folder = '', message = '']: readonly string[]): string[] => [
  code,
  folder,
  MEANINGS[code.replaceAll('`', '')] ?? message,
]

const byFirst = ([one = '']: readonly string[], [other = '']: readonly string[]): number => one.localeCompare(other)

/** Compares the codes with the type `ErrorCode`, which completes them in an editor. */
function missingCodes(listed: ReadonlySet<string>): string[] {
  const file = 'src/error-codes.ts'
  const typed = new Set([...sourceOf(file).text.matchAll(/'([A-Z_]+)'/g)].map(([, code = '']) => code))
  return [
    ...[...listed].filter((code) => !typed.has(code)).map((code) => `${file}: ${code} is missing`),
    ...[...typed].filter((code) => !listed.has(code)).map((code) => `${file}: nothing throws ${code}`),
  ]
}

/** The names that the main entry points export, as their reports say (`npm run api`). */
const publicNames = new Set(
  readdirSync(REPORTS).flatMap((file) =>
    [...readFileSync(`${REPORTS}/${file}`, 'utf8').matchAll(/^export class (\w+)/gm)].map(([, name]) => name),
  ),
)

/** An error class that has codes. */
interface ErrorClass {
  readonly name: string
  readonly base: string
  readonly codes: readonly string[]
  readonly meaning: string
}

/** Returns a row for each class: codes, its nearest public class, meaning. A class with a code of its base class is part of the row of that one. */
function rowsOf(classes: readonly ErrorClass[]): string[][] {
  const byName = new Map(classes.map((each) => [each.name, each]))
  const isPart = ({ base, codes }: ErrorClass): boolean => codes.every((code) => byName.get(base)?.codes.includes(code))
  const publicOf = (name: string): string => {
    const base = byName.get(name)?.base
    return publicNames.has(name) || base === undefined ? name : publicOf(base)
  }
  return classes
    .filter((each) => !isPart(each))
    .map((each) => {
      const parts = classes.filter((part) => part.base === each.name && isPart(part))
      const meaning = [each, ...parts].map((one) => one.meaning).join(' ')
      return [each.codes.map((code) => `\`${code}\``).join(', '), `\`${publicOf(each.name)}\``, meaning]
    })
}

/** Returns the error classes of a file that have codes. */
function classesOf(file: string, problems: string[]): ErrorClass[] {
  return sourceOf(file).statements.flatMap((statement) => {
    if (!ts.isClassDeclaration(statement) || statement.name === undefined || !isExported(statement)) return []
    const base = statement.heritageClauses?.[0]?.types[0]?.expression.getText() ?? ''
    const name = statement.name.text
    if (!/Error$/.test(name) || !/Error$/.test(base) || base === 'Error') return []
    const comment = commentOf(statement)
    if (comment === '') problems.push(`${file}: ${name} has no description`)
    const { codes, text } = codesOf(statement)
    if (codes.length === 0) return []
    return [{ name, base, codes, meaning: [comment, text].join(' ').trim() }]
  })
}

/** Returns the codes of a class: the code that it passes to its base class, or the union of literals that its constructor or property has as a type. */
function codesOf(declaration: ts.ClassDeclaration): { readonly codes: readonly string[]; readonly text: string } {
  let codes: string[] = []
  let text = ''
  visit(declaration, (node) => {
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.SuperKeyword) {
      const [first] = node.arguments
      if (first !== undefined && ts.isStringLiteral(first)) codes.push(first.text)
    }
    if (!ts.isParameter(node) && !ts.isPropertyDeclaration(node)) return
    if (node.name.getText() !== 'code' || node.type === undefined) return
    const alias = ts.isTypeReferenceNode(node.type) ? aliasOf(node.getSourceFile(), node.type.getText()) : undefined
    codes = [...(alias?.type ?? node.type).getText().matchAll(/'([A-Z_]+)'/g)].map(([, code = '']) => code)
    text = alias === undefined ? '' : commentOf(alias).replace(/^The code of an? `\w+`\.$/, '')
  })
  return { codes: [...new Set(codes)], text }
}

function aliasOf(source: ts.SourceFile, name: string): ts.TypeAliasDeclaration | undefined {
  return source.statements.find(
    (statement): statement is ts.TypeAliasDeclaration =>
      ts.isTypeAliasDeclaration(statement) && statement.name.text === name,
  )
}

/** Finds `new AgentTasksError('CODE', message)`. Returns code, folder and message. */
function thrownCodes(file: string): string[][] {
  const found: string[][] = []
  visit(sourceOf(file), (node) => {
    if (!ts.isNewExpression(node) || node.expression.getText() !== BASE) return
    const [code, message] = node.arguments ?? []
    if (code === undefined || !ts.isStringLiteral(code)) return
    found.push([`\`${code.text}\``, `\`${entryOf(file)}\``, message === undefined ? '' : messageOf(message)])
  })
  return found
}

/** Merges the rows of a code that is thrown in several places. */
function merged(rows: readonly (readonly string[])[]): string[][] {
  const byCode = new Map<string, Set<string>[]>()
  for (const [code = '', ...cells] of rows) {
    const sets = byCode.get(code) ?? cells.map(() => new Set<string>())
    cells.forEach((cell, index) => cell !== '' && sets[index]?.add(cell))
    byCode.set(code, sets)
  }
  return [...byCode].map(([code, sets]) => [
    code,
    ...sets.map((set, index) => [...set].join(index === 0 ? ', ' : ' / ')),
  ])
}

const entryOf = (file: string): string => file.split('/')[1]?.replace(/\.ts$/, '') ?? file

function messageOf(node: ts.Expression): string {
  if (ts.isStringLiteralLike(node)) return node.text
  if (ts.isBinaryExpression(node)) return messageOf(node.left) + messageOf(node.right)
  if (!ts.isTemplateExpression(node)) return '…'
  return [node.head.text, ...node.templateSpans.map(({ literal }) => `…${literal.text}`)].join('')
}

function isExported(node: ts.ClassDeclaration): boolean {
  return node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true
}
