/** Answers the questions of tasks, and explains to the model how to answer them. */
import type { AsyncTaskInfo, TaskAnswer, TaskQuestion } from '../../machines/records.js'
import { boundLines } from '../features/output/bounded-text.js'
import {
  answerHint,
  expectedAnswer,
  questionWords,
  valueAnswer,
  writtenAnswer,
} from '../features/questions/question-texts.js'
import { toOneLine } from '../data/control-characters.js'
import { InvalidInputError } from '../errors.js'
import { CHECK_FOLLOW_UPS, type FollowUps } from './task-tool-options.js'
import type { TaskView } from './task-view.js'
import { textResult, validationError, type ToolResult } from './tool.js'

interface AnswerParams {
  readonly question_id?: string | undefined
  readonly answer?: string | number | boolean | Record<string, unknown> | undefined
  readonly decline?: boolean | undefined
}

/** The maximum length of all hints about one task, in characters. */
const HINTS_CHARS = 5000

/** The open questions of a task, and the calls that answer them, as text for a model. */
export function howToAnswer(task: AsyncTaskInfo, followUps?: FollowUps): string {
  const peek = JSON.stringify({ task_id: task.id, action: 'peek' })
  return boundLines(answerHints(task, followUps), HINTS_CHARS, () => `: see check_async_tasks ${peek}`)
}

export function answerHints({ id, questions = [] }: AsyncTaskInfo, { answer }: FollowUps = CHECK_FOLLOW_UPS): string[] {
  return questions.map(
    (question) =>
      // The question is quoted on one line, so that it cannot imitate another line of the text.
      `Task ${id} asks: ${JSON.stringify(toOneLine(questionWords(question)))} ${answerHint(id, question, answer)}`,
  )
}

const NOT_STORED_YET =
  ' This could not be stored yet: if the process ends before it is, the question may be asked again.'

/** Answers an open question of a task. Resolves when the answer is stored. */
export async function answerTask(
  { manager, followUps }: TaskView,
  task: AsyncTaskInfo,
  params: AnswerParams,
): Promise<ToolResult> {
  const { questions = [] } = task
  const refusal = (field: string, received: unknown, expected: string): ToolResult =>
    validationError(followUps.answer.tool, field, received, expected)
  const ids = questions.map(({ id }) => id)
  if (ids.length === 0) return refusal('params.task_id', task.id, 'the ID of a task that waits for an answer')
  const { question_id = ids.length === 1 ? ids[0] : undefined } = params
  const question = questions.find(({ id }) => id === question_id)
  if (question === undefined) {
    return refusal('params.question_id', question_id, `one of ${ids.map((id) => JSON.stringify(id)).join(', ')}`)
  }
  if (params.decline !== true && params.answer === undefined) {
    return refusal('params.answer', undefined, expectedAnswer(question))
  }
  try {
    const isAnswered = manager.answerTask(task.id, question.id, answerOf(question, params))
    const isStored = await manager.stored().then(
      () => true,
      () => false,
    )
    const text = isAnswered
      ? `${params.decline === true ? 'Declined' : 'Answered'} ${question.id} of task ${task.id}.${isStored ? '' : NOT_STORED_YET}`
      : `Task ${task.id} no longer waits for an answer to ${question.id}.`
    return textResult(text, { id: task.id, question_id: question.id, isAnswered })
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error
    return refusal('params.answer', params.answer, expectedAnswer(question))
  }
}

function answerOf(question: TaskQuestion, { answer, decline }: AnswerParams): TaskAnswer {
  if (decline === true) return { action: 'decline' }
  return typeof answer === 'string' ? writtenAnswer(question, answer) : valueAnswer(question, answer)
}
