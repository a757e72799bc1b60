/** Reads the fields of a machine's input from the declarations in its file. */
import { readFileSync } from 'node:fs'
import ts from 'typescript'

/** A field of the input. A method of its field `host` has the name `host.method()`. */
export interface InputField {
  readonly name: string
  readonly type: string
  readonly description: string
}

/** Returns the fields of the input, with those of interfaces in the same file. @throws Error when the file declares no input */
export function inputOf(file: string): InputField[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
  const interfaces = new Map<string, ts.InterfaceDeclaration>()
  let input: ts.TypeNode | undefined
  const visit = (node: ts.Node): void => {
    if (ts.isInterfaceDeclaration(node)) interfaces.set(node.name.text, node)
    if (ts.isPropertyAssignment(node) && node.name.getText() === 'input' && ts.isAsExpression(node.initializer)) {
      input ??= node.initializer.type
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  if (input === undefined) throw new Error(`${file} declares no input`)

  const fieldsOf = (type: ts.TypeNode, prefix: string): InputField[] => {
    const declared = ts.isTypeReferenceNode(type) ? interfaces.get(type.typeName.getText()) : undefined
    const members = declared?.members ?? (ts.isTypeLiteralNode(type) ? type.members : [])
    return [...members].flatMap((member): InputField[] => {
      const name = `${prefix}${member.name?.getText() ?? ''}${ts.isMethodSignature(member) ? '()' : ''}`
      const description = ts
        .getJSDocCommentsAndTags(member)
        .map(({ comment }) => (typeof comment === 'string' ? comment.replace(/\s+/g, ' ') : ''))
        .join(' ')
      if (!ts.isPropertySignature(member) || member.type === undefined) {
        return [{ name, type: 'method', description }]
      }
      const optional = member.questionToken === undefined ? '' : ', optional'
      const inner = fieldsOf(member.type, `${name}.`)
      return [{ name, type: `\`${member.type.getText()}\`${optional}`, description }, ...inner]
    })
  }
  return fieldsOf(input, '')
}
