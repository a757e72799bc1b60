/** An MCP server as a child process that sends malformed messages, does not read, or is gone. The processes are real. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import { systemClock } from '../../../../src/system/clock.js'
import { createChildTransport } from '../../../../src/command-tasks/instances/child-transport.js'
import { waitFor } from '../../../support/wait-for.js'

const PING: JSONRPCMessage = { jsonrpc: '2.0', id: 1, method: 'ping' }

/** A child that runs a script; it is closed at the end. */
async function start(script: string) {
  const transport = createChildTransport({ command: process.execPath, args: ['-e', script] }, systemClock, 200)
  onTestFinished(() => transport.close())
  const messages: JSONRPCMessage[] = []
  const errors: Error[] = []
  transport.onmessage = (message) => messages.push(message)
  transport.onerror = (error) => errors.push(error)
  const closed = new Promise<void>((resolve) => (transport.onclose = resolve))
  await transport.start()
  return { transport, messages, errors, closed }
}

describe('a child', () => {
  it('that sends malformed messages is reported, and read on', async () => {
    const said = ['{"jsonrpc":"2.0","id":{}}', 'this is no JSON', JSON.stringify(PING), ''].join('\n')
    const { messages, errors } = await start(
      `process.stdout.write(${JSON.stringify(said)}); process.stdin.resume().on('end', () => process.exit())`,
    )
    await waitFor(() => expect(messages).toEqual([PING]))
    expect(errors).toHaveLength(1)
    expect(errors[0]?.message).toContain('invalid_union')
  })

  it('that never ends its line is closed before it takes all memory', async () => {
    const { transport, errors, closed, messages } = await start(
      `const more = () => process.stdout.write('x'.repeat(1e6), more); more(); process.stdin.resume()`,
    )
    await closed
    expect(errors[0]?.message).toBe(
      'it sent a message above 10 MiB, which is the maximum over stdio, and did not end it',
    )
    expect([messages, transport.end]).toEqual([[], `was ended by SIGTERM, because ${errors[0]?.message}`])
  })

  it('that does not run takes no message, before its start and after its end', async () => {
    const before = createChildTransport({ command: process.execPath }, systemClock, 200)
    await expect(before.send(PING)).rejects.toThrow('The server is not running.')
    await before.close()
    const { transport, closed } = await start('process.exit(3)')
    await closed
    expect(transport.end).toBe('exited with code 3')
    await expect(transport.send(PING)).rejects.toThrow('The server is not running.')
  })

  it('that does not read rejects a message when it has exited', async () => {
    const { transport, errors } = await start(
      `require('fs').closeSync(0); process.stderr.write('deaf'); process.once('SIGTERM', () => process.exit(7)); setInterval(() => {}, 1000)`,
    )
    await waitFor(() => expect(transport.stderrTail).toBe('deaf'))
    const refused = transport.send(PING).then(
      () => expect.fail('it was taken'),
      (error: unknown) => [(error as NodeJS.ErrnoException).code, transport.end],
    )
    await waitFor(() => expect(errors.map((error) => (error as NodeJS.ErrnoException).code)).toEqual(['EPIPE']))
    void transport.close()
    expect(await refused).toEqual(['EPIPE', 'exited with code 7'])
  })
})
