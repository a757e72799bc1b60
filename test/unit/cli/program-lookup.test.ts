/** Which file a command starts, as the system of Windows would find it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { findProgram } from '../../../src/cli/program-lookup.js'

it('on Windows, the variables have names in any case, and a command needs no ending', () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-lookup-'))
  const { platform } = process
  onTestFinished(() => {
    Object.defineProperty(process, 'platform', { value: platform })
    rmSync(folder, { recursive: true })
  })
  for (const name of ['agent.CMD', 'tool.PY']) writeFileSync(join(folder, name), '', { mode: 0o700 })
  const env = { Path: folder }
  expect(findProgram('agent', { cwd: '/', env })).toBeUndefined()
  Object.defineProperty(process, 'platform', { value: 'win32' })
  expect(findProgram('agent', { cwd: '/', env })).toBe(join(folder, 'agent.CMD'))
  expect(findProgram('tool', { cwd: '/', env })).toBeUndefined()
  expect(findProgram('tool', { cwd: '/', env: { ...env, PathExt: '.EXE;.PY' } })).toBe(join(folder, 'tool.PY'))
})
