/** What a program prints while it runs: how much of it is kept, and in which pieces it arrives. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { openLifelines } from '../../support/lifelines.js'
import { createRunContext } from '../../support/run-context.js'
import { failure, run, shell } from '../../support/run-process.js'

describe('output', () => {
  it('of 10 MB is kept', async () => {
    const script = `process.stdout.write('0123456789'.repeat(1e6))`
    const { final_message } = await run({ command: process.execPath, args: ['-e', script], maxOutputBytes: 16e6 })
    expect(final_message).toHaveLength(10_000_000)
    expect(final_message!.slice(-12)).toBe('890123456789')
  })

  it('beyond the limit is left out at the start of a text, with a note', async () => {
    const script = `process.stdout.write('x'.repeat(100_000) + '€last')`
    const output = await run({ command: process.execPath, args: ['-e', script], maxOutputBytes: 6 })
    expect(output).toEqual({ final_message: '[100003 bytes are left out here]\nlast' })
  })

  it('beyond the limit stops a program whose whole output is needed', async () => {
    const endless = shell('while :; do echo 123456789; done')
    for (const parse of ['json', () => ({})] as const) {
      const error = await failure({ ...endless, parse, maxOutputBytes: 1000 })
      expect(error.message).toBe(
        `Command "/bin/sh" was stopped: it printed more than maxOutputBytes (1000 bytes), and 'parse' needs all of it.`,
      )
    }
  })

  it('whose characters are split across chunks arrives whole', async () => {
    const lifelines = await openLifelines()
    onTestFinished(lifelines.close)
    const context = createRunContext()
    const ended = run({ command: process.execPath, args: lifelines.argumentsOf({ name: 'printer' }) }, context)
    const printer = await lifelines.program('printer')
    printer.tell('print 61e282')
    await context.printed('a')
    expect(context.output()).toBe('a')
    printer.tell('print acf09f98')
    await context.printed('€')
    printer.tell('print 80e2')
    await context.printed('😀')
    printer.tell('exit 0')
    expect(await ended).toEqual({ final_message: 'a€😀\ufffd' })
    expect(context.output()).toBe('a€😀\ufffd')
  })

  it('is read for progress line by line; a line without progress, or that cannot be read, reports none', async () => {
    const context = createRunContext()
    const progress = (line: string): number | { progress: number; message: string } | undefined => {
      if (line === 'bad') throw new Error('on purpose')
      if (line.startsWith('#')) return { progress: 9, message: line }
      return line === '' ? undefined : Number(line)
    }
    await run({ ...shell(`printf '1\\nbad\\r\\n\\n2\\r\\n#last'`), progress }, context)
    expect(context.reported).toEqual([1, 2, { progress: 9, message: '#last' }])
  })

  it('that makes the context throw stops the program and fails the run', async () => {
    const context = createRunContext()
    let broken: unknown = new Error('log is full')
    context.append = () => {
      throw broken
    }
    const endless = shell('while :; do echo x; done')
    await expect(run(endless, context)).rejects.toBe(broken)
    broken = 'no error at all'
    await expect(run(endless, context)).rejects.toThrow(
      'The output of command "/bin/sh" could not be read: "no error at all".',
    )
  })
})
