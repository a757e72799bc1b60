/** The tools of a browser. */
import { z } from 'zod'
import { instanceTool, type InstanceTool } from '../../protocol/instance-tools.js'
import type { Tabs } from '../debuggee.js'

export function createBrowserTools(tabs: Tabs): readonly InstanceTool[] {
  return [
    instanceTool({
      name: 'browser_tabs',
      description: 'Lists, opens, selects and closes tabs.',
      inputSchema: z.strictObject({
        action: z.enum(['list', 'new', 'select', 'close']),
        index: z.number().int().optional(),
      }),
      execute: async ({ action, index = 0 }, { signal }) => {
        const id = (await tabs.list(signal))[index]?.id ?? -1
        if (action === 'new') await tabs.open(signal)
        if (action === 'select') await tabs.select(id, signal)
        if (action === 'close') await tabs.close(id, signal)
        return await tabs.list(signal)
      },
    }),
    instanceTool({
      name: 'browser_navigate',
      description: 'Goes to an address.',
      inputSchema: z.strictObject({ url: z.string() }),
      execute: async ({ url }, { signal }) => {
        const refusal = tabs.refusal(url)
        if (refusal !== undefined) throw refusal
        const { debuggee } = await tabs.current(signal)
        const { errorText } = await debuggee.send('Page.navigate', { url }, { signal })
        return { url, errorText }
      },
    }),
    instanceTool({
      name: 'browser_evaluate',
      description: 'Runs a function in the page.',
      inputSchema: z.strictObject({ function: z.string() }),
      execute: async ({ function: code }, { signal }) => {
        const { debuggee } = await tabs.current(signal)
        const { result } = await debuggee.send(
          'Runtime.evaluate',
          { expression: `(${code})()`, awaitPromise: true, returnByValue: true },
          { signal },
        )
        return { value: result.value as unknown }
      },
    }),
  ]
}
