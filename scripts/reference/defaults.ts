/** The default of an option: what its description says, and what the code has. A description that differs is a mistake. */
import ts from 'typescript'
import { sourceOf, visit } from './source.js'

/** A description, split at its default. */
export interface WithDefault {
  /** As Markdown; empty when the description names none. */
  readonly value: string
  readonly meaning: string
}

/** Splits `How long. Default 5.` A default inside a sentence, as in `-1 (default) for no limit`, stays there as well. */
export function splitDefault(text: string): WithDefault {
  const sentence = /(?:^|\s)Default:? ((?:[^.]|\.(?=\d|\S))*)\.(?=\s|$)/.exec(text)
  if (sentence !== null) {
    const [all, value = ''] = sentence
    return { value, meaning: text.replace(all, '').trim() }
  }
  return { value: /(\S+) \(default\)/.exec(text)?.[1] ?? '', meaning: text }
}

/** What the code uses where an option is absent: initial values in patterns, what follows `??`, and properties of literals; by the option's name. */
export function defaultsIn(files: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const constants = new Map<string, ts.Expression>()
  const found = new Map<string, Set<string>>()
  const add = (name: string, value: ts.Expression | undefined): void => {
    const constant = value && valueOf(value, constants)
    if (constant !== undefined) found.set(name, (found.get(name) ?? new Set()).add(constant))
  }
  const sources = files.map(sourceOf)
  for (const source of sources) {
    visit(source, (node) => {
      if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer) {
        constants.set(node.name.text, node.initializer)
      }
    })
  }
  for (const source of sources) {
    visit(source, (node) => {
      if (ts.isBindingElement(node)) add((node.propertyName ?? node.name).getText(), node.initializer)
      if (ts.isParameter(node)) add(node.name.getText(), node.initializer)
      if (ts.isPropertyAssignment(node)) add(node.name.getText(), node.initializer)
      if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken) {
        const { left } = node
        if (ts.isPropertyAccessExpression(left)) add(left.name.text, node.right)
        if (ts.isIdentifier(left)) add(left.text, node.right)
      }
    })
  }
  return found
}

/** Whether a default in words is a value that the code must have: a number, a word in code marks, true or false. */
export function literalOf(value: string): string | undefined {
  const unit = /^([\d.]+) (KiB|MiB)\b/.exec(value)
  if (unit !== null) return String(Number(unit[1]) * (unit[2] === 'MiB' ? 1024 ** 2 : 1024))
  return /^`?(-?\d+|true|false)`?(?=$|:| \(|, or )/.exec(value)?.[1] ?? /^`([a-z-]+)`$/.exec(value)?.[1]
}

function valueOf(node: ts.Expression, constants: ReadonlyMap<string, ts.Expression>): string | undefined {
  if (ts.isNumericLiteral(node) || ts.isStringLiteral(node)) return node.text
  if (node.kind === ts.SyntaxKind.TrueKeyword) return 'true'
  if (node.kind === ts.SyntaxKind.FalseKeyword) return 'false'
  if (ts.isAsExpression(node)) return valueOf(node.expression, constants)
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.MinusToken) {
    const value = valueOf(node.operand, constants)
    return value === undefined ? undefined : `-${value}`
  }
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.AsteriskToken) {
    const product = Number(valueOf(node.left, constants)) * Number(valueOf(node.right, constants))
    return Number.isNaN(product) ? undefined : String(product)
  }
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken) {
    return valueOf(node.right, constants)
  }
  if (ts.isParenthesizedExpression(node)) return valueOf(node.expression, constants)
  if (ts.isConditionalExpression(node)) return valueOf(node.whenFalse, constants)
  if (ts.isCallExpression(node) && node.expression.getText() === 'Math.max') {
    return node.arguments[0] && valueOf(node.arguments[0], constants)
  }
  const constant = ts.isIdentifier(node) ? constants.get(node.text) : undefined
  return constant === undefined || constant === node ? undefined : valueOf(constant, constants)
}
