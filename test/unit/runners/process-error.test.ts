/** What the error of a program says, and has in its fields. */
import { expect, it } from 'vitest'
import { describeTail, endError, type ProcessError } from '../../../src/runners/process-error.js'
import { shellStartError } from '../../../src/runners/start-error.js'
import type { ProgramEnd, ProgramStop } from '../../../src/runners/supervision.js'

const remains = { command: 'agent', stdout: '', stderr: 'the end\n' }
const stop: ProgramStop = { by: 'abort', reason: 'why', killSignal: 'SIGINT', graceMs: 70, wasKilled: false }
const errorOf = (end: ProgramEnd, more: Partial<typeof remains> = {}) =>
  endError(end, { ...remains, ...more }) as ProcessError | undefined

it('has the exit code or the signal, and the end of stderr', () => {
  expect(errorOf({ exitCode: 0, signal: null })).toBeUndefined()
  const failed = errorOf({ exitCode: 3, signal: null })
  expect(failed).toMatchObject({ code: 'PROCESS_FAILED', command: 'agent', exitCode: 3, stderr: 'the end\n' })
  expect(failed?.message).toBe('Command "agent" exited with code 3. The end of its stderr:\nthe end')
  expect(failed?.signal).toBeUndefined()
  const ended = errorOf({ exitCode: null, signal: 'SIGHUP' }, { stderr: ' \n', stdout: 'said\n' })
  expect(ended).toMatchObject({ code: 'PROCESS_FAILED', signal: 'SIGHUP', stderr: ' \n' })
  expect(ended?.message).toBe('Command "agent" was ended by SIGHUP. The end of its stdout:\nsaid')
  expect(ended?.exitCode).toBeUndefined()
})

it('says how an abort has ended it, also when it then exited with 0', () => {
  const aborted = errorOf({ exitCode: 0, signal: null, stop }, { stderr: '' })
  expect(aborted).toMatchObject({ name: 'AbortError', code: 'PROCESS_ABORTED', exitCode: 0, cause: 'why' })
  expect(aborted?.message).toBe('Command "agent" was aborted: it ended after SIGINT.')
  const killed = errorOf({ exitCode: null, signal: 'SIGKILL', stop: { ...stop, wasKilled: true } }, { stderr: '' })
  expect(killed).toMatchObject({ code: 'PROCESS_ABORTED', signal: 'SIGKILL' })
  expect(killed?.message).toBe('Command "agent" was aborted: it was still running 70 ms after SIGINT and was killed.')
})

it('is what the reader of its output has thrown', () => {
  const reason = new Error('too long')
  const byReader = (given: unknown) =>
    errorOf({ exitCode: 0, signal: null, stop: { ...stop, by: 'reader', reason: given } })
  expect(byReader(reason)).toBe(reason)
  expect(byReader(7)).toMatchObject({ code: 'PROCESS_OUTPUT', exitCode: 0, cause: 7, stderr: 'the end\n' })
})

it('has the last 2000 characters of an output', () => {
  const text = 'x'.repeat(2000)
  expect(describeTail(text, '')).toBe(` The end of its stderr:\n${text}`)
  expect(describeTail('', `y${text}\n`)).toBe(` The end of its stdout:\n${text}`)
  expect(describeTail(' ', '\n')).toBe('')
})

it('is that of a start that failed for a shell that could not become the program, and for no other end', () => {
  const line = 'agent-tasks: 1: exec: agent: not found\n'
  const of = (end: Partial<ProgramEnd>, stderr = line, stdout = '') => {
    const [out, err] = [stdout, stderr].map((text) => () => ({ text, droppedBytes: 0 }))
    const attempt = { command: '/agent', cwd: '/', env: {} }
    return shellStartError({ exitCode: 127, signal: null, ...end }, { stdout: out!, stderr: err! }, attempt)
  }
  expect(of({})).toMatchObject({ code: 'PROCESS_NOT_STARTED', command: '/agent' })
  expect(of({})?.message).toContain('(ENOENT)')
  expect(of({ exitCode: 126 })?.message).toContain('(EACCES)')
  for (const end of [{ exitCode: 1 }, { exitCode: 0 }, { exitCode: null }, { stop }]) expect(of(end)).toBeUndefined()
  for (const stderr of ['', `${line}more\n`, `more\n${line}`, line.trimEnd(), 'agent: no\n']) {
    expect(of({}, stderr)).toBeUndefined()
  }
  expect(of({}, line, 'said')).toBeUndefined()
})
