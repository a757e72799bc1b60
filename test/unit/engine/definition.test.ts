/** What counts as a runner, and the one definition that is made of it. */
import { describe, expect, it, vi } from 'vitest'
import { aRunnable, resolveRunner, toFlatRunner } from '../../../src/engine/definition.js'
import { checkOption } from '../../../src/protocol/option-checks.js'
import { functionRunner, processRunner, type RunFunction, type Runner } from '../../../src/index.js'
import { createRunContext, runInput } from '../../support/run-context.js'

const run = () => ({})
const retry = { attempts: 2, on: ['interrupted'] } as const

describe('a runner', () => {
  it.each([
    [run],
    [{ run }],
    [{ run, name: 'a', description: 'b' }],
    [{ run: { run }, retry }],
    [{ run, survivesHost: true, canResume: () => true, isBound: false, foundAs: 'x', isUnique: true }],
    [{ run, takesMessages: true, retry: undefined }],
  ])('%#', (value) => {
    expect(() => checkOption(value, aRunnable, ['runner'])).not.toThrow()
  })

  it.each([undefined, null, 'run', 1, {}, { run: 1 }, { run: undefined }, { run: null }, []])('is not %j', (value) => {
    expect(() => toFlatRunner(value, 'runner')).toThrow('expected a function, or { run }')
  })

  it.each([
    [{ run, nme: 'a' }, 'the nearest is name'],
    [{ run, name: 1 }, 'runner.name: got 1, expected a string'],
    [{ run, description: 1 }, 'runner.description: got 1, expected a string'],
    [{ run, retry: 1 }, 'runner.retry'],
    [{ run, budget: 1 }, 'runner.budget'],
    [{ run, takesMessages: 1 }, 'runner.takesMessages: got 1, expected true or false'],
    [{ run, survivesHost: 'yes' }, 'runner.survivesHost'],
    [{ run, canResume: true }, 'runner.canResume: got true, expected a function'],
    [{ run, foundAs: 1 }, 'runner.foundAs'],
    [{ run, isBound: 1 }, 'runner.isBound'],
    [{ run, isUnique: 1 }, 'runner.isUnique'],
    [{ run: { run: 1 } }, 'runner.run: got'],
    [{ run: { run, takesMesages: true } }, 'runner.run.takesMesages'],
    [{ run: { run: { run, retry: 1 } } }, 'runner.run.run.retry'],
  ])('%j is refused in words', (value, words) => {
    expect(() => checkOption(value, aRunnable, ['runner'])).toThrow(words)
  })

  it('is refused when it contains itself', () => {
    const circle: { run: unknown } = { run: undefined }
    circle.run = circle
    expect(() => toFlatRunner(circle, 'runner')).toThrow(
      /^runner(\.run){10}: .* because definitions may be nested at most 10 levels deep/,
    )
  })

  it('may be an instance of a class with more, whose fields are inherited and whose functions use this', async () => {
    class Custom {
      readonly more: string = 'more'
      get takesMessages(): boolean {
        return true
      }
      run() {
        return { text: this.more }
      }
      canResume() {
        return this.more === ''
      }
    }
    const flat = toFlatRunner(new Custom(), 'runner')
    expect({ ...flat }).toMatchObject({ takesMessages: true })
    expect(await flat.run(runInput(), createRunContext())).toEqual({ text: 'more' })
    expect(flat.canResume?.(undefined)).toBe(false)
  })
})

describe('the one definition that is made of it', () => {
  it('is that of a function', () => {
    expect(resolveRunner(run)).toEqual({ run })
  })

  it('has the fields of all definitions; the outer ones hold, unless they are undefined', async () => {
    const fn = vi.fn<RunFunction>(() => ({ from: 'inside' }))
    const runner: Runner = {
      run: { run: { run: fn, takesMessages: true, survivesHost: true, foundAs: 'inner' }, retry, foundAs: 'middle' },
      survivesHost: false,
      takesMessages: undefined,
      budget: { steps: 1 },
    }
    const flat = resolveRunner(runner)
    expect(flat).toEqual({
      run: expect.any(Function) as unknown,
      takesMessages: true,
      survivesHost: false,
      foundAs: 'middle',
      retry,
      budget: { steps: 1 },
    })
    const [input, context] = [runInput(), createRunContext()]
    expect(await flat.run(input, context)).toEqual({ from: 'inside' })
    expect(fn).toHaveBeenCalledExactlyOnceWith(input, context)
  })

  it.each([
    [functionRunner(run, { takesMessages: true }), { takesMessages: true }],
    [processRunner({ command: 'cat', stdin: 'messages' }), { takesMessages: true }],
    [processRunner({ command: 'make', survivesHost: true }), { survivesHost: true }],
  ])('keeps what a runner of the package says of itself beside a policy: %#', (runner, said) => {
    expect(resolveRunner({ run: runner, retry })).toMatchObject({ ...said, retry })
  })
})
