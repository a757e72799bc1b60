/** The instance of `serve --demo`. */
import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import { localInstance } from '../command-tasks/instances/local-instance.js'
import { instanceTool } from '../protocol/instance-tools.js'
import type { Instance } from '../command-tasks/instances/instance.js'

export function createDemoInstance(): Instance {
  return localInstance({
    id: 'calc',
    tools: [
      instanceTool({
        name: 'add',
        description: 'Adds two numbers.',
        inputSchema: z.object({ a: z.number(), b: z.number() }),
        execute: ({ a, b }) => a + b,
      }),
      instanceTool({
        name: 'echo',
        description: 'Returns its arguments.',
        inputSchema: z.looseObject({}),
        execute: (input) => input,
      }),
      instanceTool({
        name: 'slow',
        description: 'Waits, and reports progress.',
        inputSchema: z.object({
          seconds: z.number().min(0).max(3600).default(5),
          steps: z.number().int().min(1).max(1000).default(5),
        }),
        execute: async ({ seconds, steps }, { signal, progress }) => {
          for (let step = 1; step <= steps; step += 1) {
            await wait((seconds * 1000) / steps, undefined, { signal })
            progress({ progress: step, total: steps })
          }
          return `${seconds} s in ${steps} steps`
        },
      }),
    ],
  })
}
