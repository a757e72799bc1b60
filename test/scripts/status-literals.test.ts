/** The lint rule that keeps code from comparing the status of a task with a literal. */
import { join } from 'node:path'
import { RuleTester } from 'eslint'
import * as ts from 'typescript'
import tseslint from 'typescript-eslint'
import { describe, expect, it } from 'vitest'
import { STATUSES } from '../../machines/task-status.js'
import { STATUSES as LINTED, statusLiterals } from '../../scripts/eslint/status-literals.js'

RuleTester.describe = describe
RuleTester.it = it

const declared = `
  type Status = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'
  interface Common { readonly id: string }
  type Task = Common & ({ readonly status: 'failed'; readonly error: string } | { readonly status: Exclude<Status, 'failed'> })
  declare const task: Task
  declare const maybe: Task | undefined
  declare const status: Status
  declare const other: { readonly status: 'open' | 'failed' }
  declare const text: string
  declare const console: { log(text: string): void }
  export {}
`
const kept = ['const isOpen = other.status === "failed"', 'const isFailed = text === "failed"']
const refused = [
  'const isFailed = task.status === "failed"',
  'const isFailed = "failed" === status',
  'const isOpen = status !== "completed"',
  'const isFailed = maybe?.status === "failed"',
  'const error = task.status === "failed" && task.error',
  'switch (status) { case "failed": break }',
]

/** A file, the text of which has each line in a block of its own: loading the library of TypeScript takes far longer than checking a line. */
const planted = (name: string, lines: readonly string[]) => ({
  name,
  filename: join(process.cwd(), `planted-${name}.ts`),
  code: [declared, ...lines.map((line) => `{ ${line} }`)].join('\n'),
})
const valid = [planted('kept', kept)]
const invalid = [
  {
    ...planted('refused', refused),
    errors: refused.map((_, at) => ({ messageId: 'literal', line: declared.split('\n').length + 1 + at })),
  },
]

function plantedProgram(): ts.Program {
  const options: ts.CompilerOptions = {
    strict: true,
    target: ts.ScriptTarget.ES2023,
    lib: ['lib.es2023.d.ts'],
    types: [],
  }
  const host = ts.createCompilerHost(options)
  const texts = new Map([...valid, ...invalid].map(({ filename, code }) => [filename, code]))
  host.fileExists = (file) => texts.has(file) || ts.sys.fileExists(file)
  host.readFile = (file) => texts.get(file) ?? ts.sys.readFile(file)
  return ts.createProgram([...texts.keys()], options, host)
}

new RuleTester({
  languageOptions: { parser: tseslint.parser, parserOptions: { programs: [plantedProgram()] } },
}).run('status-literals', statusLiterals, { valid, invalid })

it('knows every status: a type with another one would not be looked at', () => {
  expect([...LINTED].sort()).toEqual([...STATUSES].sort())
})
