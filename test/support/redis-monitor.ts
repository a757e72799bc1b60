/** What is sent to a Redis, as its command MONITOR shows it. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

/** Calls `onCommand` with each command that a client sends, as one line; what scripts do is left out. Resolves with what ends it. */
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
