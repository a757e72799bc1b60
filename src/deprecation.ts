/** Warns about features that the next version removes. */
import { isNode } from './node-builtins.js'

const warned = new Set<string>()

/**
 * Warns once per process: in Node with a `DeprecationWarning`, which `--no-deprecation` silences, otherwise on the console.
 * @param code identifies the warning, for `process.on('warning')`
 */
export function deprecate(code: string, message: string): void {
  if (warned.has(code)) return
  warned.add(code)
  if (isNode) process.emitWarning(message, { type: 'DeprecationWarning', code })
  else console.error(`${code}: ${message}`)
}

/** Warns of the former name of `backgroundAfterSeconds`. */
export function deprecateMaxBlocking(): void {
  deprecate(
    'AGENT_TASKS_MAX_BLOCKING_SECONDS',
    'The next version will ignore maxBlockingSeconds: write backgroundAfterSeconds.',
  )
}
