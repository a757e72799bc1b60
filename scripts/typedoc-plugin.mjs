/**
 * A plugin for typedoc. It takes descriptions from zod schemas. It leaves out the inner types of the state machines, because docs/machines.md describes
 * them. It does not ask for documentation of the members of anonymous types, because nobody can import such a type by name.
 */
import { readFileSync } from 'node:fs'
import { URL } from 'node:url'
import { Comment, Converter, ReferenceType, ReflectionKind, makeRecursiveVisitor } from 'typedoc'
import ts from 'typescript'

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

/** @param {import('typedoc').Application} app */
export function load(app) {
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
    if (!reflection.kindOf(ReflectionKind.Property) || reflection.hasComment()) return
    const declarations = context.getSymbolFromReflection(reflection)?.declarations ?? []
    const text = declarations.map((one) => descriptionOf(schemaOf(one, context.checker), context.checker)).find(Boolean)
    if (text !== undefined) reflection.comment = new Comment([{ kind: 'text', text }])
  })
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const reflection of Object.values(project.reflections)) hideInsideOfCharts(project, reflection)
    for (const entry of project.getReflectionsByKind(ReflectionKind.Module)) entry.name = importName(entry.name)
  })
  app.converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => {
    const named = ReflectionKind.Property | ReflectionKind.Method | ReflectionKind.Accessor
    const inner = project
      .getReflectionsByKind(named)
      .filter((reflection) => !isDescribed(reflection) && isInside(reflection, ReflectionKind.TypeLiteral))
      // typedoc does not ask for documentation of these members, and reports an error if they are excused.
      .filter((reflection) => !isInside(reflection, ReflectionKind.Parameter))
    app.options.setValue('intentionallyNotDocumented', [
      ...new Set(inner.map((reflection) => reflection.getFriendlyFullName())),
    ])
  })
}

/** Whether a member has a comment. That of a method belongs to its signatures. */
const isDescribed = (member) => [member, ...(member.signatures ?? [])].some((each) => each.hasComment())

/** The names of the entry points in imports, by the names that typedoc gives them: `src/observability/inspect` is `agent-tasks/inspect`. */
const IMPORT_NAMES = new Map(
  Object.entries(manifest.exports).map(([subpath, { types = '' }]) => [
    types.replace(/^\.\/dist\/|(\/index)?\.d\.ts$/g, ''),
    subpath.replace('.', manifest.name),
  ]),
)

/** Returns the name of an entry point in imports. */
function importName(name) {
  const found = IMPORT_NAMES.get(name)
  if (found === undefined) throw new Error(`${name} is no entry point of package.json`)
  return found
}

/** Returns the description of a zod schema. A field of a type that is derived from the schema gets the same description. */
function descriptionOf(schema, checker) {
  if (schema === undefined) return undefined
  if (ts.isIdentifier(schema)) {
    return descriptionOf(initializerOf(checker.getSymbolAtLocation(schema), checker), checker)
  }
  if (!ts.isCallExpression(schema)) return undefined
  if (ts.isIdentifier(schema.expression)) {
    // A call `name()`, where `name` is `lazily(() => schema)`.
    const [made] = schema.arguments
    if (made === undefined) return descriptionOf(schema.expression, checker)
    return schema.expression.text === 'lazily' ? descriptionOf(made.body, checker) : undefined
  }
  if (!ts.isPropertyAccessExpression(schema.expression)) return undefined
  const { name, expression: inner } = schema.expression
  return (name.text === 'describe' ? textOf(schema.arguments[0], checker) : undefined) ?? descriptionOf(inner, checker)
}

const schemaOf = (declaration, checker) =>
  ts.isShorthandPropertyAssignment(declaration)
    ? initializerOf(checker.getShorthandAssignmentValueSymbol(declaration), checker)
    : declaration.initializer

function initializerOf(symbol, checker) {
  const origin = symbol !== undefined && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  return origin?.valueDeclaration?.initializer
}

/** Returns a text of literals, and of constants that are literals. Undefined for anything else. */
function textOf(node, checker) {
  if (node === undefined) return undefined
  if (ts.isStringLiteralLike(node) || ts.isNumericLiteral(node)) return node.text
  if (ts.isIdentifier(node)) return textOf(initializerOf(checker.getSymbolAtLocation(node), checker), checker)
  if (ts.isBinaryExpression(node)) return joined([textOf(node.left, checker), textOf(node.right, checker)])
  if (!ts.isTemplateExpression(node)) return undefined
  const spans = node.templateSpans.flatMap(({ expression, literal }) => [textOf(expression, checker), literal.text])
  return joined([node.head.text, ...spans])
}

const joined = (parts) => (parts.includes(undefined) ? undefined : parts.join(''))

function hideInsideOfCharts(project, { type }) {
  type?.visit?.(
    makeRecursiveVisitor({
      reference(reference) {
        if (!(reference instanceof ReferenceType) || reference.name !== 'StateMachine') return
        for (const argument of reference.typeArguments ?? []) {
          argument.visit(
            makeRecursiveVisitor({ reflection: ({ declaration }) => project.removeReflection(declaration) }),
          )
        }
        reference.typeArguments = undefined
      },
    }),
  )
}

function isInside({ parent }, kind) {
  return parent !== undefined && (parent.kindOf(kind) || isInside(parent, kind))
}
