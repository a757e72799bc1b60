/** What a person or host changes about a run while it works: its deadline, and that it must conclude now (promise F10). */
import { z } from 'zod'
import { isTerminal, type TaskEntry } from '../../../machines/task-entry.js'
import { holdsSlot } from '../../../machines/task-status.js'
import { preview } from '../../data/preview.js'
import { lazily } from '../../protocol/lazily.js'
import { milliseconds } from '../../protocol/async-tasks.js'
import { parseInput } from '../../protocol/parse.js'
import { strictObject } from '../../protocol/strict-object.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { runStates } from '../../async-tasks/run-plan.js'
import { inboxes } from '../questions/inbox.js'

/** The code of the error of a task that was asked to conclude, and did not. */
const TASK_CONCLUDED = 'TASK_CONCLUDED'

/** Whether a change was made. If not, `reason` says why, in words. */
export type ChangeResult = { readonly changed: true } | { readonly changed: false; readonly reason: string }

const deadlineSchema = lazily(() => milliseconds().nullable())
const concludeSchema = lazily(() => strictObject({ reason: z.string().min(1).max(1000).optional() }))

/**
 * Gives the run of a task another deadline.
 * @param inMs the time until the deadline, in ms from now; null for no deadline
 * @throws INVALID_INPUT for another value
 */
export function changeDeadline(registry: TaskRegistry, id: string, inMs: number | null): ChangeResult {
  const limit = parseInput(deadlineSchema(), inMs, 'inMs') ?? undefined
  const entry = registry.history.get(id)
  const reason = refusalOf(entry, id) ?? keptDeadline(entry)
  if (entry === undefined || reason !== undefined) return { changed: false, reason: reason ?? '' }
  registry.batch(() => {
    registry.send({ type: 'deadline.change', entry, inMs: limit })
    registry.persistence?.setDeadline(entry)
  })
  return { changed: true }
}

/**
 * Asks the run of a task to return what it has. After the time to wrap up it is stopped.
 * @throws INVALID_INPUT for an invalid option
 */
export function conclude(
  registry: TaskRegistry,
  id: string,
  options: { readonly reason?: string | undefined },
): ChangeResult {
  const { reason: why } = parseInput(concludeSchema(), options, 'options')
  const entry = registry.history.get(id)
  const reason = refusalOf(entry, id)
  if (entry === undefined || reason !== undefined) return { changed: false, reason: reason ?? '' }
  const because = why === undefined ? '' : ` Reason: ${why}`
  registry.batch(() => {
    inboxes.get(entry)?.accept(`Conclude now: stop working, and return what you have.${because}`)
    const message = `Task was asked to conclude.${because}`
    registry.send({ type: 'limit.exceeded', entry, message, errorCode: TASK_CONCLUDED })
  })
  return { changed: true }
}

function refusalOf(entry: TaskEntry | undefined, id: string): string | undefined {
  if (entry === undefined) return `There is no task ${preview(id)}.`
  const name = `Task ${preview(id)}`
  const { record, ref } = entry
  if (isTerminal(record)) return `${name} has ended: it is ${record.status}.`
  if (!holdsSlot(record.status)) return `${name} has not started.`
  const state = ref?.getSnapshot()
  if (state?.matches({ active: 'stopping' }) === true) return `${name} is being stopped.`
  return state?.matches({ active: 'wrapping' }) === true ? `${name} is concluding already.` : undefined
}

/** A program that survives its host has its deadline in a script, so that it also ends when no host comes back. */
function keptDeadline(entry: TaskEntry | undefined): string | undefined {
  const isKept = entry?.record.timeoutMs !== undefined && runStates.get(entry)?.runner.survivesHost === true
  return isKept ? 'The program survives its host, and keeps the deadline with which it was started.' : undefined
}
