/**
 * ESLint rule: code asks what a status means (machines/task-status.ts), and does not compare it with a literal. With a new status, a comparison or a
 * `switch` would go wrong without an error.
 *
 * The rule uses types: it looks at values whose type consists of statuses of a task. `endedAs(record, 'failed') && record.error` tells the compiler the
 * kind of a record.
 */
import { readFileSync } from 'node:fs'
import { URL } from 'node:url'

const file = readFileSync(new URL('../../machines/task-status.ts', import.meta.url), 'utf8')
const [, table = ''] = /^const TABLE = \{$(.*?)^\}/ms.exec(file) ?? []

/** The statuses of a task: the rows of the table in machines/task-status.ts, which ESLint cannot import. */
export const STATUSES = Array.from(table.matchAll(/^ {2}'?([\w-]+)'?: \{$/gm), ([, name]) => name)

const OPERATORS = new Set(['===', '!==', '==', '!='])

/** @type {import('eslint').Rule.RuleModule} */
export const statusLiterals = {
  meta: {
    type: 'problem',
    docs: { description: 'ask what a status means' },
    schema: [],
    messages: {
      literal:
        'Ask what the status means (machines/task-status.ts), or use a record with every status, not {{status}}.',
    },
  },
  create(context) {
    const statuses = new Set(STATUSES)
    const { program, getTypeAtLocation } = context.sourceCode.parserServices
    const checker = program.getTypeChecker()

    /** Whether a type consists of two or more statuses. */
    function isStatus(type) {
      const kinds = checker.getNonNullableType(type).types ?? []
      return kinds.length > 1 && kinds.every((each) => statuses.has(each.value))
    }

    function check(node, literal, value) {
      if (literal?.type !== 'Literal' || !statuses.has(literal.value) || !isStatus(getTypeAtLocation(value))) return
      context.report({ node, messageId: 'literal', data: { status: literal.value } })
    }

    return {
      BinaryExpression(node) {
        if (!OPERATORS.has(node.operator)) return
        if (node.left.type === 'Literal') check(node, node.left, node.right)
        else check(node, node.right, node.left)
      },
      SwitchCase: (node) => check(node, node.test, node.parent.discriminant),
    }
  },
}
