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

const reading = (more: Partial<ProcessSettings>) => {
  const context = createRunContext()
  return { context, output: captureOutput({ ...settings, ...more }, context) }
}
const bytes = (text: string): Uint8Array => Buffer.from(text)

it('keeps the last maxOutputBytes of stdout and 8 KiB of stderr, from a whole character on', () => {
  const { output } = reading({ maxOutputBytes: 4 })
  output.onStdout(bytes('abcd'))
  expect(output.stdout()).toEqual({ text: 'abcd', droppedBytes: 0, isLost: false })
  output.onStdout(bytes('é'))
  expect(output.stdout()).toEqual({ text: 'cdé', droppedBytes: 2, isLost: false })
  output.onStdout(bytes('xyz'))
  // Half of the character would be left: all of it is dropped.
  expect(output.stdout()).toEqual({ text: 'xyz', droppedBytes: 6, isLost: false })
  output.onStderr(bytes(`y${'x'.repeat(8191)}`))
  expect(output.stderr()).toEqual({ text: `y${'x'.repeat(8191)}`, droppedBytes: 0 })
  output.onStderr(bytes('z'))
  expect(output.stderr()).toEqual({ text: `${'x'.repeat(8191)}z`, droppedBytes: 1 })
})

it('shows bytes that are no UTF-8 at the beginning of an output that is whole', () => {
  const { output } = reading({})
  output.onStdout(Uint8Array.of(0x80, 0x41))
  expect(output.stdout()).toEqual({ text: '\ufffdA', droppedBytes: 0, isLost: false })
})

it.each([['json'], [() => ({})]] as const)('stops a program whose whole output is needed and too long: %s', (parse) => {
  const { output } = reading({ maxOutputBytes: 4, parse: parse })
  output.onStderr(bytes('why'))
  output.onStdout(bytes('1234'))
  const tooLong = expect.objectContaining({
    code: 'PROCESS_OUTPUT',
    stderr: 'why',
    message: expect.stringContaining('it printed more than maxOutputBytes (4 bytes)') as string,
  }) as Error
  expect(() => output.onStdout(bytes('5'))).toThrow(tooLong)
  const other = reading({ parse: parse }).output
  other.onGap('stderr', 5)
  expect(() => other.onGap('stdout', 5)).toThrow('it printed more than maxOutputBytes (1000 bytes)')
})

it('reads the end of an output that was too long, and says how much is missing before it', () => {
  for (const parse of ['text', 'json-last-line'] as const) {
    const { output } = reading({ parse })
    output.onStdout(bytes('begin'))
    output.onGap('stdout', 10)
    output.onStdout(bytes('end'))
    expect(output.stdout()).toEqual({ text: 'end', droppedBytes: 15, isLost: false })
  }
})

it('says that a part of stdout is lost', () => {
  const { output, context } = reading({})
  output.onLost()
  expect(output.stdout()).toMatchObject({ isLost: true })
  expect(context.output()).toBe('\n[a part of the output is missing: it could not be written to the store]\n')
})

it('reports the progress of each line of stdout, the last one as well, and of none that cannot be read', () => {
  const { output, context } = reading({
    progress: (line) => {
      if (line === 'bad') throw new Error('no number')
      return line === '' ? undefined : Number(line)
    },
  })
  output.onStdout(bytes('1\nbad\n\n2'))
  output.onStderr(bytes('7\n'))
  expect(context.reported).toEqual([1])
  output.end()
  expect(context.reported).toEqual([1, 2])
})
