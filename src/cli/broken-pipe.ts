/** Ends the program when the reader of its output has gone, as in `agent-tasks tasks watch | head -1`. */
import type { EventEmitter } from 'node:events'
import { EXIT } from './exit-codes.js'

/** Servers go on when their output has no reader. `mcp` detects the end of its client itself. */
const SERVERS: readonly (string | undefined)[] = ['serve', 'mcp']

/**
 * Without a listener a broken pipe would be an uncaught exception with a stack trace.
 * @param command the first argument of the command line
 */
export function endOnBrokenPipe(
  command: string | undefined,
  { stdout, stderr }: { readonly stdout: EventEmitter; readonly stderr: EventEmitter },
): void {
  const onError =
    (isResult: boolean) =>
    (error: NodeJS.ErrnoException): void => {
      if (error.code !== 'EPIPE') throw error
      // Only the result on standard output matters: a command without a reader of its messages goes on.
      if (isResult && !SERVERS.includes(command)) process.exit(EXIT.brokenPipe)
    }
  stdout.on('error', onError(true))
  stderr.on('error', onError(false))
}
