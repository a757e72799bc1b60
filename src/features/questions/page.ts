/** The actions of the page that answer a question of a task, and send a message to a task. */
import { z } from 'zod'
import { lazily } from '../../protocol/lazily.js'
import { parseInput } from '../../protocol/parse.js'
import { strictObject } from '../../protocol/strict-object.js'
import { conflict, done, notStored } from '../../page/answers.js'
import { fieldsSchema, isRecord } from '../../page/named-fields.js'
import type { PageFeature } from '../../page/page-feature.js'
import type { MessageRequest } from '../../page/wire.js'

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

const NOT_STORED = notStored(
  'The question was answered, but the store could not save this yet. If the host ends before the store has saved it, the question may be asked again.',
)

export const questionPage: PageFeature = {
  taskActions: {
    answer: async ({ manager, state }, entry, body) => {
      const { questionId, answer } = parseInput(answerSchema(), body, 'body')
      parseInput(contentSchema(), answer, 'answer')
      if (entry.kind !== 'async') return conflict('NO_QUESTION', 'A command task asks no questions.')
      const isAnswered = manager?.answerTask(entry.record.id, questionId, answer)
      if (isAnswered !== true) {
        return conflict(
          'QUESTION_CLOSED',
          'This question is no longer open. It was already answered, or the task continued without an answer.',
        )
      }
      state.noteAnswer(entry, questionId)
      try {
        await manager?.stored()
        return done()
      } catch {
        return NOT_STORED
      }
    },
    message: ({ manager, state }, entry, body) => {
      const { message }: MessageRequest = parseInput(messageSchema(), body, 'body')
      if (entry.kind !== 'async') return conflict('NOT_SENT', 'A command task takes no messages.')
      const result = manager?.sendToTask(entry.record.id, message)
      if (result?.sent !== true) return conflict('NOT_SENT', result?.reason ?? 'There is no such task.')
      state.noteMessage(entry, message)
      return done()
    },
  },
}
