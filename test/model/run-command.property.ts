/** F1: run_command starts what is allowed, with what was asked for, and nothing else. The programs are real. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import fc from 'fast-check'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { createRunCommandTool } from '../../src/tools/run-command.js'

/** How the tool is made; a planted fault makes it wrong. */
export type CreateCommandTool = typeof createRunCommandTool

const PROGRAMS = ['sh', 'env', '/bin/sh'] as const
const VARIABLES = ['A_VAR', 'B_VAR'] as const
const FOLDERS = ['inside', 'other'] as const

/** Prints where it runs, the variables and the arguments. */
const PROBE = `pwd -P; env | grep -E '^(A_VAR|B_VAR|C_VAR)=' | sort; printf '<%s>' "$@"`

const argument = fc.oneof(
  fc.constantFrom('{goal}', '{id}', '$HOME', '*', '-n', ' ', "'", '"; exit 9', '`ls`', '--'),
  fc.string({ maxLength: 5 }).map((text) => text.replaceAll('\0', '')),
)

const call = fc.record({
  command: fc.constantFrom(...PROGRAMS, ...PROGRAMS, './sh', 'bin/sh', '/bin/../bin/sh', 'printf', 'SH', 'sh '),
  args: fc.array(argument, { maxLength: 3 }),
  env: fc.dictionary(fc.constantFrom(...VARIABLES, 'C_VAR'), fc.stringMatching(/^[a-z]{0,4}$/), { maxKeys: 2 }),
  cwd: fc.constantFrom(undefined, '.', 'sub', '..', 'sub/..', 'away', '/', '../other', '../inside-too', 'missing'),
})

const policy = fc.record({
  allow: fc.subarray([...PROGRAMS]),
  env: fc.subarray([...VARIABLES]),
  folders: fc.subarray([...FOLDERS], { minLength: 1 }),
})

/** A few folders, of which a policy allows some. */
function makeFolders(): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-commands-')))
  for (const folder of ['inside/sub', 'other/sub', 'inside-too', 'secret']) {
    mkdirSync(join(root, folder), { recursive: true })
  }
  for (const folder of FOLDERS) symlinkSync(join(root, 'secret'), join(root, folder, 'away'))
  return root
}

export function runCommandProperty(createTool: CreateCommandTool = createRunCommandTool) {
  return fc.asyncProperty(policy, call, async ({ allow, env: named, folders }, { command, args, env, cwd }) => {
    const root = makeFolders()
    const manager = new AsyncTaskManager({ onError: () => undefined })
    try {
      const roots = folders.map((folder) => join(root, folder))
      const options = { getAsyncTaskManager: () => manager, commands: { allow, env: named, cwd: roots } }
      const isShell = command.endsWith('sh')
      const result = await createTool(options).execute({
        command,
        args: isShell ? ['-c', PROBE, 'probe', ...args] : [],
        env,
        ...(cwd !== undefined && { cwd }),
      })
      const [task] = manager.getAllTasks()
      const folder = resolve(roots[0] ?? '', cwd ?? '.')
      const isInside = ['', '/sub'].some((below) => roots.some((each) => each + below === folder))
      const isAllowed =
        allow.some((program) => program === command) &&
        Object.keys(env).every((name) => named.some((variable) => variable === name)) &&
        isInside
      assert.equal(task !== undefined, isAllowed, `F1: ${result.llmContent}`)
      if (task === undefined) {
        assert.equal(result.error?.type, 'parameter_validation')
        return
      }
      assert.deepEqual([task.kind, task.status, task.exitCode], ['command', 'completed', 0], `F1: ${result.llmContent}`)
      if (!isShell) return
      const variables = Object.keys(env)
        .sort()
        .map((name) => `${name}=${env[name] ?? ''}\n`)
      // Without arguments printf prints its format once.
      const printed = args.length === 0 ? '<>' : args.map((text) => `<${text}>`).join('')
      assert.equal(task.output?.final_message, `${folder}\n${variables.join('')}${printed}`.trim(), 'F1')
    } finally {
      await manager.dispose()
      rmSync(root, { recursive: true, force: true })
    }
  })
}
