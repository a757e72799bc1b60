/** Watches the commands that clients send to a Redis, with its command MONITOR. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

/**
 * Calls `onCommand` with each command that a client sends, as one line. Leaves out the commands of scripts. Resolves with a function that ends the
 * watch.
 */
export async function watchCommands(port: number, onCommand: (line: string) => void): Promise<() => void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  const lines = createInterface({ input: socket })
  socket.write('MONITOR\r\n')
  await once(lines, 'line')
  lines.on('line', (line) => {
    if (!line.includes(' lua] ')) onCommand(line)
  })
  return () => void socket.destroy()
}
