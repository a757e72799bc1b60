/** What the folder of a program says of it. The program can write to its files: they may have anything. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { canFollow, endSurvivor, lastOutput, readExit } from '../../../src/engine/program-folder.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-tasks-folder-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)

it('has the last characters of the output: of its end, where there is one', () => {
  expect(lastOutput(folder, 10)).toBe('')
  write('stdout', 'the beginning\n')
  expect(lastOutput(folder, 10)).toBe('beginning')
  write('stdout.tail', 'the end\n')
  expect(lastOutput(folder, 10)).toBe('the end')
  write('stdout.tail', '')
  expect(lastOutput(folder, 100)).toBe('the beginning')
})

it('has whole characters of the output, however many bytes they have', () => {
  write('stdout', 'é'.repeat(1000))
  expect(lastOutput(folder, 100)).toBe('é'.repeat(100))
  write('stdout', '😀'.repeat(1000))
  expect(lastOutput(folder, 100)).toBe('😀'.repeat(50))
  expect(lastOutput(folder, 99)).toBe('😀'.repeat(49))
})

it('has the exit code once the script has written it; a program that is not known cannot be followed', () => {
  expect(readExit(folder)).toBeUndefined()
  write('exit', '3\n')
  expect(readExit(folder)).toBe('3\n')
  expect(canFollow(folder, undefined)).toBe(false)
})

it('is removed with all of its files, and one that is not there is left alone', () => {
  mkdirSync(join(folder, 'inner'))
  write('inner/file', 'x')
  endSurvivor(folder, undefined)
  expect(readExit(folder)).toBeUndefined()
  endSurvivor(folder, undefined)
})
