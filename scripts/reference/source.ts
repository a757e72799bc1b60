/** Reads interfaces, classes and constants of the sources with their TSDoc comments. It only parses the files and checks no types, which is fast. */
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import ts from 'typescript'

/** A named part of the sources. `text` is its comment, as one line of Markdown. */
export interface Documented {
  readonly name: string
  readonly text: string
}

const read = new Map<string, ts.SourceFile>()

/** Returns the syntax tree of a file. The path is from the root of the repository. */
export function sourceOf(file: string): ts.SourceFile {
  const known = read.get(file)
  if (known !== undefined) return known
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
  read.set(file, source)
  return source
}

/** Returns an interface. @throws Error when the file has no such interface */
export function interfaceIn(file: string, name: string): ts.InterfaceDeclaration {
  const found = sourceOf(file).statements.find(
    (statement): statement is ts.InterfaceDeclaration =>
      ts.isInterfaceDeclaration(statement) && statement.name.text === name,
  )
  if (found === undefined) throw new Error(`${file} has no interface ${name}`)
  return found
}

/** Returns the members of an interface. @throws Error when the file has no such interface */
export const membersOf = (file: string, name: string): Documented[] =>
  memberNodesOf(file, name).map((member) => ({ name: member.name?.getText() ?? '', text: commentOf(member) }))

/** As `membersOf`, with the syntax of each member. */
export const memberNodesOf = (file: string, name: string): readonly ts.TypeElement[] => interfaceIn(file, name).members

/** Returns the file and the name of the type that a member of an interface has. Undefined for a member whose type has no name. */
export function typeOfMember(
  file: string,
  name: string,
  member: string,
): readonly [file: string, name: string] | undefined {
  const found = memberNodesOf(file, name).find((one) => one.name?.getText() === member)
  if (found === undefined || !ts.isPropertySignature(found)) return undefined
  if (found.type === undefined || !ts.isTypeReferenceNode(found.type)) return undefined
  const type = found.type.typeName.getText()
  const source = sourceOf(file).statements.find(
    (statement): statement is ts.ImportDeclaration =>
      ts.isImportDeclaration(statement) &&
      new RegExp(`\\b${type}\\b`).test(statement.importClause?.namedBindings?.getText() ?? ''),
  )
  if (source === undefined) return [file, type]
  return [posix.join(posix.dirname(file), (source.moduleSpecifier as ts.StringLiteral).text.replace(/js$/, 'ts')), type]
}

/** Returns how a member is written where it is used: a name, or a call such as `send(text, options?)`. */
export function callOf(member: ts.TypeElement): string {
  const name = member.name?.getText() ?? ''
  const type = ts.isPropertySignature(member) ? member.type : undefined
  const call = ts.isMethodSignature(member)
    ? member
    : type !== undefined && ts.isFunctionTypeNode(type)
      ? type
      : undefined
  if (call === undefined) return name
  const parameters = call.parameters.map((parameter) => {
    const rest = parameter.dotDotDotToken === undefined ? '' : '...'
    return `${rest}${parameter.name.getText()}${parameter.questionToken === undefined ? '' : '?'}`
  })
  return `${name}(${parameters.join(', ')})`
}

/** Returns the `@throws` tags of a member, as one line. */
export function errorsOf(member: ts.Node): string {
  const tags = ts.getJSDocTags(member).filter(({ tagName }) => tagName.text === 'throws')
  return tags
    .map((tag) => oneLine(tagText(tag)))
    .filter((text) => text !== '')
    .join('; ')
}

/** The whole text of a tag. The parser takes its first word apart, because it may be a type. */
const tagText = (tag: ts.JSDocTag): string =>
  tag
    .getText()
    .replace(/^@throws\s*/, '')
    .replace(/\n\s*\*\s?/g, '\n')

/** Returns the strings of a constant array, each with the comment above it. @throws Error when the file has no such array */
export function itemsOf(file: string, name: string): Documented[] {
  let found: ts.ArrayLiteralExpression | undefined
  visit(sourceOf(file), (node) => {
    if (!ts.isVariableDeclaration(node) || node.name.getText() !== name || node.initializer === undefined) return
    const value = ts.isAsExpression(node.initializer) ? node.initializer.expression : node.initializer
    if (ts.isArrayLiteralExpression(value)) found = value
  })
  if (found === undefined) throw new Error(`${file} has no array ${name}`)
  return found.elements.filter(ts.isStringLiteral).map((item) => ({ name: item.text, text: leadingComment(item) }))
}

/** Returns the TSDoc comment of a node without its tags, as one line. */
export function commentOf(node: ts.Node): string {
  const [doc] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc).slice(-1)
  return oneLine(doc === undefined ? '' : (ts.getTextOfJSDocComment(doc.comment) ?? ''))
}

export function visit(node: ts.Node, look: (node: ts.Node) => void): void {
  look(node)
  node.forEachChild((child) => visit(child, look))
}

function leadingComment(node: ts.Node): string {
  const text = node.getSourceFile().text
  const [range] = (ts.getLeadingCommentRanges(text, node.getFullStart()) ?? []).slice(-1)
  return range === undefined ? '' : oneLine(text.slice(range.pos, range.end).replace(/^\/\*\*?|\*\/$|^ *\/\/ ?/g, ''))
}

function oneLine(text: string): string {
  return text
    .replace(/^(\* )?- /, '')
    .replace(/\s*\n\s*(\* )?(- )?/g, ' ')
    .trim()
}
