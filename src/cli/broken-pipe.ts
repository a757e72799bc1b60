/** How the program ends when nobody reads its output any more, as in `agent-tasks tasks watch | head -1`. */
import type { EventEmitter } from 'node:events'
import { EXIT } from './exit-codes.js'

/** They serve others after they have printed where; `mcp` notices by itself that its client is gone. */
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
      // Messages may be lost; the result is what the command is for.
      if (isResult && !SERVERS.includes(command)) process.exit(EXIT.brokenPipe)
    }
  stdout.on('error', onError(true))
  stderr.on('error', onError(false))
}
