/** The actions that a person can take on one task. Each action calls a method of the task's manager, which checks whether the action is possible. */
import { z } from 'zod'
import { omitUndefined } from '../data/omit-undefined.js'
import { lazily } from '../protocol/lazily.js'
import { parseInput } from '../protocol/parse.js'
import { strictObject } from '../protocol/strict-object.js'
import { conflict, done, madeTask, nothingSchema, notStored, type Answer } from './answers.js'
import type { PageEntry } from './page-entry.js'
import { ofFeatures } from './page-features.js'
import { runAgain } from './run-again.js'
import type { Sources } from './sources.js'
import type { CancelRequest } from './wire.js'

/** The maximum length of the reason for a cancellation, in characters. */
export const MAX_REASON = 1000

const cancelSchema = lazily(() => strictObject({ reason: z.string().max(MAX_REASON).optional() }))

const CANCEL_NOT_STORED = notStored(
  'The task was cancelled, but the store could not save this yet. If the host ends before the store has saved it, the task may run again.',
)
export type TaskAction = (sources: Sources, entry: PageEntry, body: unknown) => Answer | Promise<Answer>

/** The actions on a task, by the last segment of their path. */
export const taskActions: Readonly<Record<string, TaskAction>> = {
  cancel: async (sources, entry, body) => {
    const { reason }: CancelRequest = parseInput(cancelSchema(), body, 'body')
    const why = reason === undefined || reason === '' ? 'cancelled on the page' : reason
    const { manager, taskManager } = sources
    const isCancelled =
      entry.kind === 'async'
        ? manager?.cancelTask(entry.record.id, { reason: why })
        : taskManager?.cancelTask(entry.id, why)
    if (isCancelled !== true) return conflict('TASK_ENDED', 'The task has ended: there is nothing to cancel.')
    try {
      await (entry.kind === 'async' ? manager : taskManager)?.stored()
      return done(entry.kind === 'async' ? omitUndefined({ stopsWithinMs: entry.stopsWithinMs }) : {})
    } catch {
      return CANCEL_NOT_STORED
    }
  },
  'run-again': async (sources, entry, body) => {
    parseInput(nothingSchema(), body, 'body')
    return madeTask(await runAgain(sources, entry.key))
  },
  ...ofFeatures('taskActions'),
}
