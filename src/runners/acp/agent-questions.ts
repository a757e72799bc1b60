/**
 * Questions of an agent's model that come as a request for permission. Qwen Code 0.24.4 sends them so: the questions are in the input of the tool, and the
 * answers belong in the field `answers` beside the outcome, by the number of the question.
 */
import { z } from 'zod'
import type { RequestPermissionRequest } from '@agentclientprotocol/sdk'
import type { TaskAnswer } from '../../../machines/records.js'
import { lazily } from '../../protocol/lazily.js'
import type { TaskQuestionInput } from '../../protocol/task-questions.js'
import { cutText } from '../../data/cut-text.js'
import { oneLine } from './session-updates.js'

/** The maximum length of a question, in characters. */
const MAX_QUESTION_CHARS = 2000

const requestSchema = lazily(() =>
  z.object({
    _meta: z.object({ qwenInteractionKind: z.literal('user_question') }),
    rawInput: z.object({
      questions: z
        .array(
          z.object({
            question: z.string().min(1),
            header: z.string().optional(),
            options: z.array(z.object({ label: z.string().min(1) })).default([]),
            multiSelect: z.boolean().default(false),
          }),
        )
        .min(1)
        .max(20),
    }),
  }),
)

type Questions = z.output<ReturnType<typeof requestSchema>>['rawInput']['questions']

/** Returns the questions in a request for permission; undefined if it asks for a permission. */
export function questionsIn(toolCall: RequestPermissionRequest['toolCall']): Questions | undefined {
  const parsed = requestSchema().safeParse(toolCall)
  return parsed.success ? parsed.data.rawInput.questions : undefined
}

/** One question to the owner of the task, with a field for each question of the agent. */
export function formOf(questions: Questions): Exclude<TaskQuestionInput, string> {
  const texts = questions.map(({ question }) => cutText(question, MAX_QUESTION_CHARS))
  const fields = questions.map(({ header, options, multiSelect }, index) => {
    const labels = [...new Set(options.map(({ label }) => label))]
    const one = { type: 'string', ...(labels.length > 0 && { enum: labels }) }
    const title = oneLine(header ?? '') || `Question ${index + 1}`
    const value = multiSelect && labels.length > 0 ? { type: 'array', items: one } : one
    return [String(index), { ...value, title, description: texts[index] }] as const
  })
  const properties = Object.fromEntries(fields)
  return { message: texts.join('\n'), schema: { type: 'object', properties, required: Object.keys(properties) } }
}

/** The answers as Qwen Code reads them. */
export const answersOf = ({ content = {} }: TaskAnswer): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(content).map(([index, value]) => [index, Array.isArray(value) ? value.join(', ') : String(value)]),
  )
