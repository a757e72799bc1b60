/** Wraps tools. Reports how many calls are running, and gives a clear error to a call that the browser has interrupted. */
import { ToolCallError } from '../../errors.js'
import type { InstanceTool } from '../../protocol/instance-tools.js'

/** @param onRunning called with the number of running calls whenever it changes. A call starts its tool when the returned promise has resolved */
export function countRunning(
  tools: readonly InstanceTool[],
  onRunning: (running: number) => Promise<void>,
): readonly InstanceTool[] {
  let running = 0
  return tools.map((tool) => ({
    ...tool,
    execute: async (input, context) => {
      running += 1
      try {
        await onRunning(running)
        context.signal.throwIfAborted()
        return await tool.execute(input, context)
      } catch (error) {
        throw isOfEndedWorker(error) ? interrupted() : error
      } finally {
        running -= 1
        // The tool has already taken effect, so a failure here is ignored.
        await onRunning(running).catch(() => undefined)
      }
    },
  }))
}

/**
 * While the browser stops the service worker, `chrome.*` fails with this message. The socket to the server may still be open, and can still carry the
 * error.
 */
const isOfEndedWorker = (error: unknown): boolean => error instanceof Error && error.message === 'No SW'

const interrupted = (): ToolCallError =>
  new ToolCallError(
    'INTERRUPTED',
    'The browser stopped the extension while the command was running. The command may have taken effect.',
  )
