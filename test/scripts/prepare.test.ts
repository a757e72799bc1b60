/** npm's script `prepare`: when it builds, and what npm gets of that. */
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'

const script = join(process.cwd(), 'scripts', 'prepare.mjs')
const packed = { npm_package_resolved: 'git+ssh://git@example.org/agent-tasks.git' }

/** Runs the script with an npm that notes its arguments, prints a line and ends with a status. */
function prepare(variables: Readonly<Record<string, string>>, { status = 0, isAlone = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-prepare-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [npm, noted] = [join(folder, 'npm'), join(folder, 'noted')]
  writeFileSync(npm, `#!/bin/sh\nprintf '%s ' "$@" > '${noted}'\necho building\nexit ${status}\n`)
  chmodSync(npm, 0o755)
  const alone = join(folder, 'prepare.mjs')
  if (isAlone) copyFileSync(script, alone)
  const { npm_package_resolved: _, NODE_PATH: _path, ...env } = process.env
  const ended = spawnSync(process.execPath, [isAlone ? alone : script], {
    encoding: 'utf8',
    env: { ...env, PATH: `${folder}${delimiter}${env['PATH'] ?? ''}`, ...variables },
  })
  return {
    exitCode: ended.status,
    stdout: ended.stdout,
    stderr: ended.stderr,
    ran: existsSync(noted) ? readFileSync(noted, 'utf8').trim() : undefined,
  }
}

it('builds a package that npm packs, and leaves standard output to npm', () => {
  expect(prepare(packed)).toEqual({ exitCode: 0, stdout: '', stderr: 'building\n', ran: 'run --silent built' })
})

it('fails when the build fails, so that no package without `dist` is made', () => {
  expect(prepare(packed, { status: 3 }).exitCode).toBe(3)
})

it('fails when npm cannot be started', () => {
  expect(prepare({ ...packed, PATH: '/nowhere' })).toMatchObject({ exitCode: 1, ran: undefined })
})

it('builds nothing in a clone', () => {
  expect(prepare({})).toEqual({ exitCode: 0, stdout: '', stderr: '', ran: undefined })
})

it('builds nothing where TypeScript is not installed', () => {
  expect(prepare(packed, { isAlone: true })).toEqual({ exitCode: 0, stdout: '', stderr: '', ran: undefined })
})
