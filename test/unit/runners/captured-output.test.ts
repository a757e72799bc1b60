/** The end of a program's outputs: what has arrived of a last character is not lost. */
import { expect, it } from 'vitest'
import { captureOutput } from '../../../src/runners/captured-output.js'
import type { ProcessSettings } from '../../../src/runners/process-options.js'
import { createRunContext } from '../../support/run-context.js'

const settings = { command: 'program', maxOutputBytes: 1000, parse: 'text' } as unknown as ProcessSettings
const [start] = [Buffer.from('é').subarray(0, 1)]

it.each(['onStdout', 'onStderr'] as const)('%s: an output that ends inside a character shows that', (stream) => {
  const context = createRunContext()
  const output = captureOutput(settings, context)
  output[stream](Buffer.concat([Buffer.from('caf'), start]))
  expect(context.output()).toBe('caf')
  output.end()
  expect(context.output()).toBe('caf\ufffd')
})

it.each(['stdout', 'stderr'] as const)(
  '%s: half a character before a gap is shown there, and spoils no other',
  (name) => {
    const context = createRunContext()
    const output = captureOutput(settings, context)
    const push = name === 'stdout' ? output.onStdout : output.onStderr
    push(Buffer.concat([Buffer.from('caf'), start]))
    output.onGap(name, 10)
    push(Buffer.from('end'))
    output.end()
    expect(context.output()).toBe('caf\ufffd\n[10 bytes are left out here]\nend')
  },
)
