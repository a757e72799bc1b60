/** A function as a run: it returns the output, or throws. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import type { RunFunction } from '../../../src/engine/runner.js'
import { functionRunner } from '../../../src/runners/function-runner.js'
import { createRunContext, runInput } from '../../support/run-context.js'

const runOf = (fn: RunFunction) => functionRunner(fn).run(runInput(), createRunContext())

describe('a function runner', () => {
  it('turns a string into the final message', async () => {
    expect(await runOf(() => ' text\n')).toEqual({ final_message: ' text\n' })
    expect(await runOf(async () => '')).toEqual({ final_message: '' })
  })

  it('turns undefined into an empty output, and keeps an object', async () => {
    expect(await runOf(() => undefined)).toEqual({})
    const output = { emitted_vars: { a: 1 }, own: true }
    expect(await runOf(async () => output)).toBe(output)
  })

  it('passes the input and the context', async () => {
    const [input, context] = [runInput(), createRunContext()]
    const { run } = functionRunner((...given) => {
      expect(given).toEqual([input, context])
      expect(given[1].signal).toBe(context.signal)
      return undefined
    })
    await run(input, context)
    expect.assertions(2)
  })

  it('rejects with what the function throws', async () => {
    const broken = new Error('on purpose')
    const throwing = (): never => {
      throw broken
    }
    await expect(runOf(throwing)).rejects.toBe(broken)
    await expect(runOf(async () => throwing())).rejects.toBe(broken)
  })

  it('takes messages where that was said, and refuses other options', () => {
    const fn = () => undefined
    expect(functionRunner(fn).takesMessages).toBeUndefined()
    expect(functionRunner(fn, { takesMessages: true }).takesMessages).toBe(true)
    expect(() => functionRunner(fn, { takesMessages: 'yes' as never })).toThrow('options.takesMessages')
    expect(() => functionRunner(fn, { messages: true } as never)).toThrow('options.messages')
  })

  it('throws for a value that is not a function', () => {
    expect(() => functionRunner('rm' as never)).toThrow('fn: got "rm", expected a function.')
  })

  it('A1: completes or fails the task it was launched for', async () => {
    const manager = new AsyncTaskManager()
    onTestFinished(() => manager.dispose())
    const launch = (fn: RunFunction) =>
      manager.launch({ subagentName: 'fn', goalPrompt: 'goal' }, functionRunner(fn)).id
    const ids = [launch(({ goal }) => `did: ${goal}`), launch(() => Promise.reject(new Error('could not')))]
    const { settled } = await manager.waitFor(ids)
    expect(settled.map(({ status }) => status)).toEqual(['completed', 'failed'])
    expect(settled).toMatchObject([{ output: { final_message: 'did: goal' } }, { error: 'could not' }])
  })
})
