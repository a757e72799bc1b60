/** Options are validated when a runner is created, and the error names the invalid one. */
import { describe, expect, it } from 'vitest'
import { InvalidInputError } from '../../../src/errors.js'
import { parseProcessOptions, type ProcessRunnerOptions } from '../../../src/runners/process-options.js'
import { processRunner } from '../../../src/runners/process-runner.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { createRunContext, runInput } from '../../support/run-context.js'

describe('process options', () => {
  it.each<[string, unknown]>([
    ['options: got undefined, expected an object.', undefined],
    ['options.command: got undefined, expected a string.', {}],
    ['options.command: got "", expected at least 1 character(s).', { command: '' }],
    ['options.command: got "a\\u0000b", expected a string without null characters.', { command: 'a\0b' }],
    ['options.args: got "-v", expected an array.', { command: 'a', args: '-v' }],
    ['options.args[1]: got 5, expected a string.', { command: 'a', args: ['-n', 5] }],
    ['options.cwd: got "", expected at least 1 character(s).', { command: 'a', cwd: '' }],
    ['options.env.PORT: got 80, expected a string.', { command: 'a', env: { PORT: 80 } }],
    [
      `options.parse: got "xml", expected 'text', 'json', 'json-last-line' or a function.`,
      { command: 'a', parse: 'xml' },
    ],
    ['options.progress: got "yes", expected a function.', { command: 'a', progress: 'yes' }],
    ['options.maxOutputBytes: got 0, expected at least 1.', { command: 'a', maxOutputBytes: 0 }],
    ['options.graceMs: got -1, expected at least 0.', { command: 'a', graceMs: -1 }],
    ['options.graceMs: got Infinity, expected a number.', { command: 'a', graceMs: Infinity }],
    [`options.killSignal: got "TERM", expected a signal, as in 'SIGTERM'.`, { command: 'a', killSignal: 'TERM' }],
    ['options.clock: got {}, expected a clock: { now, setTimeout, clearTimeout }.', { command: 'a', clock: {} }],
    ['options.argv: got an empty array, expected a known name; the nearest is args.', { command: 'a', argv: [] }],
  ])('%s', (message, options) => {
    const make = () => processRunner(options as ProcessRunnerOptions)
    expect(make).toThrow(InvalidInputError)
    expect(make).toThrow(message)
  })

  it('have the documented defaults', () => {
    expect(parseProcessOptions({ command: 'a' })).toMatchObject({
      args: [],
      env: {},
      parse: 'text',
      maxOutputBytes: 8_388_608,
      graceMs: 4000,
      killSignal: 'SIGTERM',
    })
    const clock = createManualClock()
    expect(parseProcessOptions({ command: 'a', clock }).clock).toBe(clock)
  })

  it('are copied', async () => {
    const options = { command: '/bin/sh', args: ['-c', 'echo "$WORD"'], env: { WORD: 'before' } }
    const runner = processRunner(options)
    options.args[1] = 'echo after'
    options.env.WORD = 'after'
    options.command = 'no-such-agent'
    expect(await runner.run(runInput(), createRunContext())).toEqual({ final_message: 'before' })
  })
})
