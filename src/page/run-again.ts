/** Runs a task again whose input is in the manager, the journal or the history of the store. */
import { planAsyncAgain } from './async-again.js'
import { planCommandAgain } from './command-again.js'
import type { PageEntry } from './page-entry.js'
import type { Again, PlanAgain } from './plan-again.js'
import type { Sources } from './sources.js'

/** @throws StoreError when the history cannot be read */
export function planAgain(sources: Sources, key: string): Promise<PlanAgain> {
  const [kind, id] = splitKey(key)
  const entry = sources.state.journal.get(key)
  if (kind === 'async') return planAsyncAgain(sources, id, entry?.kind === 'async' ? entry : undefined)
  if (kind === 'command') return planCommandAgain(sources, id, entry?.kind === 'command' ? entry : undefined)
  return Promise.resolve('There is no such task.')
}

/** Why a task cannot run again, in words; undefined when it can. */
export async function whyNotAgain(sources: Sources, { key }: PageEntry): Promise<string | undefined> {
  try {
    const plan = await planAgain(sources, key)
    return typeof plan === 'string' ? plan : undefined
  } catch (error) {
    return `The history of its store cannot be read: ${error instanceof Error ? error.message : String(error)}`
  }
}

/**
 * Runs a task again.
 * @throws what the launch throws, such as TaskLimitError, and StoreError; nothing has changed then
 */
export async function runAgain(sources: Sources, key: string): Promise<Again> {
  const plan = await planAgain(sources, key)
  return typeof plan === 'string' ? { error: plan, code: 'NOT_REPEATABLE' } : plan()
}

/** The kind and the id of `async:abc`. */
function splitKey(key: string): [string, string] {
  const at = key.indexOf(':')
  return [key.slice(0, at), key.slice(at + 1)]
}
