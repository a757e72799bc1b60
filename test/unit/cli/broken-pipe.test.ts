import { EventEmitter } from 'node:events'
import { expect, it, onTestFinished, vi } from 'vitest'
import { endOnBrokenPipe } from '../../../src/cli/broken-pipe.js'

function listen(command: string | undefined) {
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never)
  onTestFinished(() => exit.mockRestore())
  const streams = { stdout: new EventEmitter(), stderr: new EventEmitter() }
  endOnBrokenPipe(command, streams)
  return { exit, ...streams }
}
const broken = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })

it('a command ends when nobody reads its result any more', () => {
  const { exit, stdout } = listen('watch')
  stdout.emit('error', broken)
  expect(exit).toHaveBeenCalledExactlyOnceWith(141)
})

it('a command goes on when nobody reads its messages any more', () => {
  const { exit, stderr } = listen('submit')
  stderr.emit('error', broken)
  expect(exit).not.toHaveBeenCalled()
})

it.each(['serve', 'mcp'])('%s goes on', (command) => {
  const { exit, stdout } = listen(command)
  stdout.emit('error', broken)
  expect(exit).not.toHaveBeenCalled()
})

it('another error is thrown', () => {
  expect(() => listen('watch').stdout.emit('error', new Error('disk full'))).toThrow('disk full')
})
