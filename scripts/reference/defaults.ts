/** Finds the default of an option in its description and in the code. A description with another default than the code is a mistake. */
import ts from 'typescript'
import { sourceOf, visit } from './source.js'

/** A description, split at its default. */
export interface WithDefault {
  /** The default, as Markdown; empty if the description has none. */
  readonly value: string
  readonly meaning: string
}

/**
 * Splits a text such as `How long. Default 5.` into its parts. A default inside a sentence, such as `-1 (default) for no limit`, also stays in the
 * sentence.
 */
export function splitDefault(text: string): WithDefault {
  const sentence = /(?:^|\s)Default:? ((?:[^.]|\.(?=\d|\S))*)\.(?=\s|$)/.exec(text)
  if (sentence !== null) {
    const [all, value = ''] = sentence
    return { value, meaning: text.replace(all, '').trim() }
  }
  return { value: /(\S+) \(default\)/.exec(text)?.[1] ?? '', meaning: text }
}

/**
 * Finds the values that the code uses where an option is absent, by the name of the option. They are initial values in patterns and parameters, what
 * follows `??`, and properties of object literals.
 */
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

/**
 * Returns the value of a default that the code must have: a number, a word in code marks, true or false. Undefined for a default that is described in
 * words.
 */
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
