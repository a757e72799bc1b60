/** The tools that every instance has in the suite (instance-suite.ts). Each kind of instance defines them in its own way. */
import { ToolCallError } from '../../src/errors.js'

interface SuiteCall {
  readonly signal: AbortSignal
  readonly progress: (progress: { progress: number; total?: number; message?: string }) => void
}

/** The error that a tool of the suite throws. */
export class SuiteFailure extends Error {}

export interface SuiteTools {
  readonly names: readonly string[]
  /** Resolves with text. Throws a SuiteFailure for a result with `isError`, and a ToolCallError for a JSON-RPC error. */
  call(name: string, args: Readonly<Record<string, unknown>>, call: SuiteCall): Promise<string>
  /** Resolves when a call of `hold` with this name has begun. */
  held(name: string): Promise<void>
  /** Resolves when the call of `hold` with this name was aborted. */
  stopped(name: string): Promise<void>
  /** Ends the call of `hold` with this name successfully. */
  release(name: string): void
}

export function createSuiteTools(): SuiteTools {
  const gates = new Map<string, { promise: Promise<void>; open: () => void }>()
  const gate = (name: string) => {
    let known = gates.get(name)
    if (known === undefined) {
      let open: () => void = () => undefined
      const promise = new Promise<void>((resolve) => (open = resolve))
      gates.set(name, (known = { promise, open }))
    }
    return known
  }
  return {
    names: ['echo', 'fail', 'explode', 'count', 'hold'],
    held: (name) => gate(`held ${name}`).promise,
    stopped: (name) => gate(`stopped ${name}`).promise,
    release: (name) => gate(`released ${name}`).open(),
    call: async (name, args, { signal, progress }) => {
      const key = String(args['name'])
      switch (name) {
        case 'echo':
          return `Echo: ${String(args['message'])}`
        case 'fail':
          throw new SuiteFailure('There is no such element.')
        case 'explode':
          throw new ToolCallError(-32042, 'Out of order.')
        case 'count':
          for (let n = 1; n <= 3; n += 1) progress({ progress: n, total: 3, message: `step ${n}` })
          return 'counted'
        case 'hold':
          gate(`held ${key}`).open()
          await Promise.race([
            gate(`released ${key}`).promise,
            new Promise<never>((_, reject) =>
              signal.addEventListener('abort', () => {
                gate(`stopped ${key}`).open()
                reject(new Error('stopped'))
              }),
            ),
          ])
          return 'held'
        default:
          throw new ToolCallError(-32602, `Unknown tool: ${name}`)
      }
    },
  }
}
