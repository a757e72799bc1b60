/** The actions that a person can take on one task. Each action calls a method of the task's manager, which checks whether the action is possible. */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import { parseInput } from '../protocol/parse.js'
import { strictObject } from '../protocol/strict-object.js'
import { conflict, done, madeTask, nothingSchema, notStored, type Answer } from './answers.js'
import { fieldsSchema, isRecord } from './named-fields.js'
import type { PageEntry } from './page-entry.js'
import { runAgain } from './run-again.js'
import type { Sources } from './sources.js'
import type { CancelRequest, MessageRequest } from './wire.js'

/** The maximum length of the reason for a cancellation, in characters. */
export const MAX_REASON = 1000

const cancelSchema = lazily(() => strictObject({ reason: z.string().max(MAX_REASON).optional() }))
// Only the shape of the answer is checked here. The manager checks the answer against the question.
const answerSchema = lazily(() =>
  strictObject({
    questionId: z.string(),
    answer: z.custom<Readonly<Record<string, unknown>>>(
      isRecord,
      'an object with an action: accept, decline or cancel',
    ),
  }),
)
const contentSchema = lazily(() => z.looseObject({ content: fieldsSchema().optional() }))
const messageSchema = lazily(() => strictObject({ message: z.string().min(1) }))

const CANCEL_NOT_STORED = notStored(
  'The task was cancelled, but the store could not save this yet. If the host ends before the store has saved it, the task may run again.',
)
const ANSWER_NOT_STORED = notStored(
  'The question was answered, but the store could not save this yet. If the host ends before the store has saved it, the question may be asked again.',
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
      return done()
    } catch {
      return CANCEL_NOT_STORED
    }
  },
  detach: (sources, entry, body) => {
    parseInput(nothingSchema(), body, 'body')
    if (entry.kind !== 'async') return conflict('NOT_DETACHED', 'A command task always runs in the background.')
    const result = sources.manager?.detachTask(entry.record.id)
    return result?.detached === true ? done() : conflict('NOT_DETACHED', result?.reason ?? 'There is no such task.')
  },
  'run-again': async (sources, entry, body) => {
    parseInput(nothingSchema(), body, 'body')
    return madeTask(await runAgain(sources, entry.key))
  },
  answer: async (sources, entry, body) => {
    const { questionId, answer } = parseInput(answerSchema(), body, 'body')
    parseInput(contentSchema(), answer, 'answer')
    if (entry.kind !== 'async') return conflict('NO_QUESTION', 'A command task asks no questions.')
    const isAnswered = sources.manager?.answerTask(entry.record.id, questionId, answer)
    if (isAnswered !== true) {
      return conflict(
        'QUESTION_CLOSED',
        'This question is no longer open. It was already answered, or the task continued without an answer.',
      )
    }
    sources.state.noteAnswer(entry, questionId)
    try {
      await sources.manager?.stored()
      return done()
    } catch {
      return ANSWER_NOT_STORED
    }
  },
  message: (sources, entry, body) => {
    const { message }: MessageRequest = parseInput(messageSchema(), body, 'body')
    if (entry.kind !== 'async') return conflict('NOT_SENT', 'A command task takes no messages.')
    const result = sources.manager?.sendToTask(entry.record.id, message)
    if (result?.sent !== true) return conflict('NOT_SENT', result?.reason ?? 'There is no such task.')
    sources.state.noteMessage(entry, message)
    return done()
  },
}
