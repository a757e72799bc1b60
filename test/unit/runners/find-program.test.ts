/** Which file is started for a name: the same as the system would take. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { findProgram } from '../../../src/runners/find-program.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-find-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ['first', 'second']) mkdirSync(join(folder, name))
})

function file(path: string, mode = 0o755): string {
  const whole = join(folder, path)
  writeFileSync(whole, '')
  chmodSync(whole, mode)
  return whole
}
const find = (command: string, path = `${join(folder, 'first')}:${join(folder, 'second')}`, cwd?: string): string =>
  findProgram(command, { cwd, env: { PATH: path } })

it('is the first in PATH that is a file and may be executed', () => {
  mkdirSync(join(folder, 'first', 'agent'))
  expect(() => find('agent')).toThrow('it was not found (ENOENT)')
  const second = file('second/agent')
  expect(find('agent')).toBe(second)
  rmSync(join(folder, 'first', 'agent'), { recursive: true })
  const first = file('first/agent', 0o644)
  expect(find('agent')).toBe(second)
  chmodSync(first, 0o755)
  expect(find('agent')).toBe(first)
})

it('says that it may not be executed when one is there that may not, wherever it is in PATH', () => {
  file('first/agent', 0o644)
  expect(() => find('agent')).toThrow('it may not be executed (EACCES)')
  rmSync(join(folder, 'first', 'agent'))
  file('second/agent', 0o644)
  expect(() => find('agent')).toThrow('it may not be executed (EACCES)')
})

it('is looked up from the working directory of the program', () => {
  const agent = file('first/agent')
  expect(find('./first/agent', '', folder)).toBe(agent)
  expect(find('agent', 'first', folder)).toBe(agent)
  expect(find('agent', '', join(folder, 'first'))).toBe(agent)
  expect(find(agent, '')).toBe(agent)
  expect(() => find('./agent', join(folder, 'first'), folder)).toThrow('there is no such file (ENOENT)')
})
