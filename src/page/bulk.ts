/** Cancels many tasks, or runs them again. Reports how many succeeded, and why the others did not. */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import { parseInput } from '../protocol/parse.js'
import { strictObject } from '../protocol/strict-object.js'
import { INTERNAL_ERROR, refusalOf, type Answer } from './answers.js'
import type { PageEntry } from './page-entry.js'
import type { Sources } from './sources.js'
import { MAX_REASON, taskActions } from './task-actions.js'
import { MAX_BULK, type BulkReport } from './wire.js'

/** The maximum number of tasks that the report lists for each reason. */
const MAX_NAMED = 10

const bulkSchema = lazily(() =>
  strictObject({
    action: z.enum(['cancel', 'run-again']),
    keys: z.array(z.string().max(1000)).min(1).max(MAX_BULK),
    reason: z.string().max(MAX_REASON).optional(),
  }).refine(({ action, reason }) => action === 'cancel' || reason === undefined, {
    path: ['reason'],
    message: 'no reason, because only the action cancel has one',
  }),
)

const GONE: Answer = {
  status: 404,
  body: { error: 'The page no longer has this task. It keeps only the latest tasks.', code: 'NOT_FOUND' },
}

/** @param onFailure called with an error that the request did not cause. The report counts that task as refused. */
export async function actOnMany(
  sources: Sources,
  body: unknown,
  onFailure: (error: unknown) => void,
): Promise<BulkReport> {
  const { action, keys, reason } = parseInput(bulkSchema(), body, 'body')
  const entries = [...new Set(keys)].map((key) => ({ key, entry: sources.state.journal.get(key) }))
  const live = new Set(entries.filter(({ entry }) => entry?.isEnded === false).map(({ key }) => key))
  const act = async (entry: PageEntry | undefined): Promise<Answer> => {
    if (entry === undefined) return GONE
    try {
      const request = reason === undefined ? {} : { reason }
      return (await taskActions[action]?.(sources, entry, request)) ?? GONE
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal !== undefined) return refusal
      onFailure(error)
      return { status: 409, body: { error: INTERNAL_ERROR, code: 'INTERNAL' } }
    }
  }
  const refused = new Map<string, { readonly code: string; readonly keys: string[] }>()
  let done = 0
  for (const { key, entry } of entries) {
    const { status, body: answer } = await act(entry)
    // An earlier cancellation in this request has cancelled the parent of this task, and with it this task.
    const isCancelledWithParent = action === 'cancel' && live.has(key) && entry?.state === 'cancelled'
    if (status === 200 || isCancelledWithParent) done += 1
    if (status === 200 || isCancelledWithParent || !('error' in answer)) continue
    const same = refused.get(answer.error) ?? { code: answer.code, keys: [] }
    same.keys.push(key)
    refused.set(answer.error, same)
  }
  return {
    done,
    refused: Array.from(refused, ([error, { code, keys: all }]) => ({
      error,
      code,
      count: all.length,
      keys: all.slice(0, MAX_NAMED),
    })),
  }
}
