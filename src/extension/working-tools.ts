/** Tools that report how many calls are running, and when the browser has stopped them. */
import { ToolCallError } from '../errors.js'
import type { InstanceTool } from '../protocol/instance-tools.js'

/** @param onRunning called with the number of running calls at each change; a tool starts after its promise resolves */
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

/** The error of `chrome.*` while the browser stops the service worker, whose socket may still be open. */
const isOfEndedWorker = (error: unknown): boolean => error instanceof Error && error.message === 'No SW'

const interrupted = (): ToolCallError =>
  new ToolCallError(
    'INTERRUPTED',
    'The browser has ended the extension while the command was at work: it may have taken effect.',
  )
