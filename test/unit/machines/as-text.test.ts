/**
 * Stately's editor reads the file of a machine as text, without running it. So each file must have one `createMachine` with a literal
 * configuration: nothing in it is spread, computed or imported.
 */
import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { expect, it } from 'vitest'
import {
  asyncTaskMachine,
  commandTaskMachine,
  deliveryMachine,
  instanceMachine,
  laneMachine,
} from '../../../machines/index.js'

const files: [string, { readonly config: object }][] = [
  ['async-task', asyncTaskMachine],
  ['delivery', deliveryMachine],
  ['command-task', commandTaskMachine],
  ['lane', laneMachine],
  ['instance', instanceMachine],
]

/** The parts of a configuration that are code, which the editor shows as code. */
const CODE = new Set(['context', 'input', 'output'])

it.each(files)('machines/%s.ts has a literal configuration, which is that of the machine', (name, { config }) => {
  const text = readFileSync(new URL(`../../../machines/${name}.ts`, import.meta.url), 'utf8')
  const charts = chartsIn(ts.createSourceFile(`${name}.ts`, text, ts.ScriptTarget.Latest, true))
  expect(charts).toHaveLength(1)
  expect(charts[0]).toEqual(JSON.parse(JSON.stringify(withoutCode(config))))
})

/** The arguments of the calls `….createMachine(…)` in a file. */
function chartsIn(node: ts.Node): unknown[] {
  const found: unknown[] = []
  const visit = (inner: ts.Node): void => {
    const isCall = ts.isCallExpression(inner) && ts.isPropertyAccessExpression(inner.expression)
    if (isCall && inner.expression.name.text === 'createMachine') {
      found.push(read(inner.arguments[0]!))
    }
    ts.forEachChild(inner, visit)
  }
  visit(node)
  return found
}

function read(node: ts.Expression): unknown {
  if (ts.isStringLiteralLike(node)) return node.text
  if (ts.isNumericLiteral(node)) return Number(node.text)
  if (node.kind === ts.SyntaxKind.TrueKeyword) return true
  if (node.kind === ts.SyntaxKind.FalseKeyword) return false
  if (ts.isArrayLiteralExpression(node)) return node.elements.map(read)
  if (!ts.isObjectLiteralExpression(node)) throw new Error(`no chart as text: ${node.getText()}`)
  return Object.fromEntries(
    node.properties.flatMap((property) => {
      if (!ts.isPropertyAssignment(property)) throw new Error(`no chart as text: ${property.getText()}`)
      const { name } = property
      if (!ts.isIdentifier(name) && !ts.isStringLiteral(name)) throw new Error(`no chart as text: ${name.getText()}`)
      return CODE.has(name.text) ? [] : [[name.text, read(property.initializer)]]
    }),
  )
}

const withoutCode = (config: object): object =>
  Object.fromEntries(Object.entries(config).filter(([key]) => !CODE.has(key)))
