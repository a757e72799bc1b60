/** Warns about features that the next version will remove. */
import { isNode } from './node-builtins.js'

const warned = new Set<string>()

/**
 * Warns once per process: in Node with a `DeprecationWarning`, which `--no-deprecation` silences, in a browser on the console.
 * @param code identifies the warning, for `process.on('warning')`
 */
export function deprecate(code: string, message: string): void {
  if (warned.has(code)) return
  warned.add(code)
  if (isNode) process.emitWarning(message, { type: 'DeprecationWarning', code })
  else console.error(`${code}: ${message}`)
}

/** Warns that `maxBlockingSeconds` is the former name of `backgroundAfterSeconds`. */
export function deprecateMaxBlocking(): void {
  deprecate(
    'AGENT_TASKS_MAX_BLOCKING_SECONDS',
    'The next version will ignore maxBlockingSeconds: write backgroundAfterSeconds.',
  )
}
