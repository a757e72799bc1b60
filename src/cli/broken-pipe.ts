/** Ends the program when the reader of its output has closed the pipe, as in `agent-tasks tasks watch | head -1`. */
import type { EventEmitter } from 'node:events'
import { EXIT } from './exit-codes.js'

/** Commands that continue without a reader of their output. `mcp` itself detects that its client has gone. */
const SERVERS: readonly (string | undefined)[] = ['serve', 'mcp']

/**
 * Handles a broken pipe. Without a listener, it would be an uncaught exception with a stack trace.
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
      // Only a lost reader of standard output ends the command. Without a reader of its messages (standard error), it continues.
      if (isResult && !SERVERS.includes(command)) process.exit(EXIT.brokenPipe)
    }
  stdout.on('error', onError(true))
  stderr.on('error', onError(false))
}
