/** Warns of what the next version does not have any more. */
import { isNode } from './node-builtins.js'

const warned = new Set<string>()

/**
 * Warns once in a process: in Node with a `DeprecationWarning`, which `--no-deprecation` silences, and elsewhere on the console.
 * @param code what the warning is about, for `process.on('warning')`
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
