/**
 * What typedoc leaves out of the API reference: the insides of types that a reader does not look for there. What a chart is made of is in
 * docs/machines.md, and a part of an anonymous type is no name that anyone can import: what it is a part of says what it means.
 */
import { Converter, ReferenceType, ReflectionKind, makeRecursiveVisitor } from 'typedoc'

/** @param {import('typedoc').Application} app */
export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const reflection of Object.values(project.reflections)) hideInsideOfCharts(project, reflection)
  })
  app.converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => {
    const named = ReflectionKind.Property | ReflectionKind.Method | ReflectionKind.Accessor
    const inner = project
      .getReflectionsByKind(named)
      .filter((reflection) => !reflection.hasComment() && isInside(reflection, ReflectionKind.TypeLiteral))
      // Of these typedoc does not ask for documentation, and would call it a mistake to excuse them.
      .filter((reflection) => !isInside(reflection, ReflectionKind.Parameter))
    app.options.setValue('intentionallyNotDocumented', [
      ...new Set(inner.map((reflection) => reflection.getFriendlyFullName())),
    ])
  })
}

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
