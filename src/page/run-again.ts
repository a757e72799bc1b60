/** Runs a task again. The input of the task comes from the manager, the journal or the history of the store. */
import { planAsyncAgain } from './async-again.js'
import { planCommandAgain } from './command-again.js'
import type { PageEntry } from './page-entry.js'
import type { Again, PlanAgain } from './plan-again.js'
import type { Sources } from './sources.js'

/** @throws StoreError if the history cannot be read */
function planAgain(sources: Sources, key: string): Promise<PlanAgain> {
  const [kind, id] = splitKey(key)
  const entry = sources.state.journal.get(key)
  if (kind === 'async') return planAsyncAgain(sources, id, entry?.kind === 'async' ? entry : undefined)
  if (kind === 'command') return planCommandAgain(sources, id, entry?.kind === 'command' ? entry : undefined)
  return Promise.resolve('There is no such task.')
}

/** Returns the reason why a task cannot run again; undefined if the task can run again. */
export async function whyNotAgain(sources: Sources, { key }: PageEntry): Promise<string | undefined> {
  try {
    const plan = await planAgain(sources, key)
    return typeof plan === 'string' ? plan : undefined
  } catch (error) {
    return `The history of the store cannot be read: ${error instanceof Error ? error.message : String(error)}`
  }
}

/**
 * Runs a task again. If it throws, nothing has changed.
 * @throws TASK_LIMIT if the host has too many tasks
 * @throws StoreError if the history cannot be read or the new task cannot be stored
 */
export async function runAgain(sources: Sources, key: string): Promise<Again> {
  const plan = await planAgain(sources, key)
  return typeof plan === 'string' ? { error: plan, code: 'NOT_REPEATABLE' } : plan()
}

/** Splits a key such as `async:abc` into kind and id. */
function splitKey(key: string): [string, string] {
  const at = key.indexOf(':')
  return [key.slice(0, at), key.slice(at + 1)]
}
