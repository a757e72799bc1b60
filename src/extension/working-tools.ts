/** Tools that say how many of them run. */
import type { InstanceTool } from '../protocol/instance-tools.js'

/** @param onRunning called with the number of running calls at each change; a tool starts when its promise is fulfilled */
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
      } finally {
        running -= 1
        await onRunning(running)
      }
    },
  }))
}
