/** The lint rule that keeps `src` and `machines` to what XState documents. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { RuleTester } from 'eslint'
import * as ts from 'typescript'
import tseslint from 'typescript-eslint'
import { describe, expect, it } from 'vitest'
import { DOCUMENTED, documentedXstate } from '../../scripts/eslint/documented-xstate.js'

RuleTester.describe = describe
RuleTester.it = it

const declared = `
  import { createActor, setup, type ActorRefLike, type ActorScope, type AnyActorRef, type InspectionEvent } from 'xstate'
  const machine = setup({}).createMachine({ context: { _parent_: 1, scheduler: 2 } })
  declare const actor: ReturnType<typeof createActor<typeof machine>>
  declare const ref: AnyActorRef | undefined
  declare const like: ActorRefLike
  declare const scope: ActorScope<any, any>
  declare const inspected: InspectionEvent
  declare const untyped: any
  declare const ours: { scheduler: { schedule(): void }; mailbox: string[]; logic: string }
`
const documented = [
  'actor.start().send({ type: "x" })',
  'actor.on("*", () => undefined).unsubscribe()',
  'const { context, status, value } = actor.getSnapshot()',
  'actor.getSnapshot().context.scheduler',
  'ref?.system.get("x")?.getSnapshot()',
  'createActor(machine, { parent: scope.self, id: "a", inspect: () => undefined })',
  'scope.defer(() => scope.emit({ type: "x" }))',
  'if (inspected.type === "@xstate.event") inspected.sourceRef?.sessionId',
  'const { id } = like as AnyActorRef',
  'machine.provide({}).config',
  'Object.assign({}, { actor })',
  'const map = new Map([["a", actor]]); map.get("a")',
  'const { scheduler, logic } = ours; ours.mailbox.push("x")',
  'untyped.whatever',
]

/** What is refused, by the message that says so. */
const refused = {
  internal: [
    'actor._parent',
    'ref?._parent',
    'actor["_snapshot"]',
    'untyped._parent',
    'const { _parent } = actor',
    'function sessionOf({ _parent }: AnyActorRef) {}',
    'interface Seen { _parent?: Seen }',
    'untyped.mailbox',
    '"_parent" in like',
    'actor.system._clock',
    'actor.getSnapshot()._nodes',
  ],
  undocumented: [
    'const { scheduler } = actor.system',
    'actor.system.scheduler',
    'actor.system["start"]',
    'actor.logic',
    'actor.options',
    'machine.implementations',
    'machine.microstep',
    'const { system: { scheduler } } = scope',
  ],
  changed: [
    'actor.send = () => undefined',
    'delete (actor as { id?: string }).id; delete ref!.toJSON',
    'Object.assign(actor.system, { get: () => undefined })',
    'Object.defineProperty(actor, "send", {})',
    'Reflect.get(actor, "mail" + "box")',
    'new Proxy(actor, {})',
  ],
  cast: ['like as unknown as { logic: object }', '(actor.system as unknown as { relay(): void }).relay()'],
  module: ['import { __unsafe_getAllOwnEventDescriptors } from "xstate"', 'import "xstate/dist/xstate.cjs.js"'],
}

/** A file, the text of which has each line in a block of its own: loading what XState declares takes far longer than checking a line. */
const planted = (name: string, lines: readonly string[]) => ({
  name,
  filename: join(process.cwd(), `planted-${name}.ts`),
  code: [declared, ...lines.map((line) => (line.startsWith('import') ? line : `{ ${line} }`))].join('\n'),
})

const valid = [planted('documented', documented)]
const invalid = Object.entries(refused).map(([messageId, lines]) => ({
  ...planted(messageId, lines),
  errors: lines.map((_, at) => ({ messageId, line: declared.split('\n').length + 1 + at })),
}))

/** The program of the planted files, which are nowhere on the disk. */
function plantedProgram(): ts.Program {
  const { module, target } = { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023 }
  const options: ts.CompilerOptions = { module, target, strict: true, noEmit: true, types: [] }
  const host = ts.createCompilerHost(options)
  const texts = new Map([...valid, ...invalid].map(({ filename, code }) => [filename, code]))
  host.fileExists = (file) => texts.has(file) || ts.sys.fileExists(file)
  host.readFile = (file) => texts.get(file) ?? ts.sys.readFile(file)
  return ts.createProgram([...texts.keys()], options, host)
}

new RuleTester({
  languageOptions: { parser: tseslint.parser, parserOptions: { programs: [plantedProgram()] } },
}).run('documented-xstate', documentedXstate, { valid, invalid })

it('lists only members that XState declares, and none that it marks as private or internal', () => {
  const declarations = readDeclarations()
  const unknown = Object.entries(DOCUMENTED).flatMap(([owner, names]) =>
    [...names].filter((name) => declarations.get(owner)?.has(name) !== true).map((name) => `${owner}.${name}`),
  )
  expect(unknown).toEqual([])
})

/** The members that each interface, class and type alias of xstate declares, without those that are not for users. */
function readDeclarations(): Map<string, Set<string>> {
  const folder = 'node_modules/xstate/dist/declarations/src'
  const found = new Map<string, Set<string>>()
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.d.ts')) continue
    const source = ts.createSourceFile(file, readFileSync(`${folder}/${file}`, 'utf8'), ts.ScriptTarget.ES2023, true)
    for (const statement of source.statements) {
      const name = (statement as { name?: ts.Identifier }).name?.text
      if (name === undefined) continue
      const names = found.get(name) ?? new Set()
      found.set(name, names)
      collect(statement, names)
    }
  }
  return found
}

function collect(node: ts.Node, into: Set<string>): void {
  ts.forEachChild(node, (child) => {
    const name = (child as { name?: ts.Node }).name
    if (name !== undefined && ts.isIdentifier(name) && !isHidden(child)) into.add(name.text)
    collect(child, into)
  })
}

function isHidden(node: ts.Node): boolean {
  const isPrivate = (ts.getCombinedModifierFlags(node as ts.Declaration) & ts.ModifierFlags.Private) !== 0
  return isPrivate || ts.getJSDocTags(node).some(({ tagName }) => /^(internal|private)$/.test(tagName.text))
}
