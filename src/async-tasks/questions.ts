/** Asks what a run wants to know, and takes the answer. */
import type { AskedQuestion, TaskAnswer } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-table.js'
import { QuestionWithdrawnError } from '../errors.js'
import { parseInput } from '../protocol/parse.js'
import {
  answerSchemaOf,
  taskAnswerSchema,
  taskQuestionSchema,
  type TaskQuestionInput,
} from '../protocol/task-questions.js'
import type { RegistryCore } from './core.js'
import { OpenQuestions } from './open-questions.js'

/**
 * Asks on behalf of a task's run.
 * @returns resolves with the answer; rejects when the task ends or is overdue, or the question is malformed
 */
export function askQuestion(core: RegistryCore, entry: TaskEntry, input: TaskQuestionInput): Promise<TaskAnswer> {
  const asked = new Promise<TaskAnswer>((resolve) => {
    const { message, schema } = parseInput(taskQuestionSchema(), input, 'question')
    const question: AskedQuestion = { message, schema, askedAt: core.clock.now() }
    resolve(core.transact(() => open(core, entry, question)))
  })
  // A run that does not wait for its answer must not end the process when there will be none.
  asked.catch(() => undefined)
  return asked
}

function open(core: RegistryCore, entry: TaskEntry, question: AskedQuestion): Promise<TaskAnswer> {
  const before = entry.record.questions?.length ?? 0
  entry.ref?.send({ type: 'task.ask', question })
  const id = entry.record.questions?.[before]?.id
  if (id === undefined) throw new QuestionWithdrawnError(entry.record.id)
  return (core.attachment(entry).questions ??= new OpenQuestions()).wait(id)
}

/**
 * Answers an open question of a task.
 * @returns false, and nothing changed, when no such question is open
 * @throws InvalidInputError for an answer that is none, or that does not fit the schema of its question
 */
export function answerQuestion(core: RegistryCore, entry: TaskEntry, questionId: string, input: TaskAnswer): boolean {
  // It is plain data from here on: nothing of the host's runs between the look at the question and its answer.
  const answer = parseInput(taskAnswerSchema(), input, 'answer')
  const question = entry.record.questions?.find(({ id }) => id === questionId)
  if (question === undefined) return false
  if (answer.action === 'accept') parseInput(answerSchemaOf(question.schema), answer.content ?? {}, 'answer.content')
  core.transact(() => {
    entry.ref?.send({ type: 'task.answer', questionId })
    core.attachment(entry).questions?.answer(questionId, Object.freeze(answer) as TaskAnswer)
  })
  return true
}
