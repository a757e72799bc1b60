/** Asks the questions of runs, and passes on the answers. */
import type { AskedQuestion, TaskAnswer, TaskQuestion } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import type { AskOptions } from '../../engine/steps.js'
import { QuestionWithdrawnError } from '../../errors.js'
import { aName, checkOptions, type OptionTypes } from '../../protocol/option-checks.js'
import { parseInput } from '../../protocol/parse.js'
import {
  answerSchemaOf,
  taskAnswerSchema,
  taskQuestionSchema,
  type TaskQuestionInput,
} from '../../protocol/task-questions.js'
import { writtenAnswer, valueAnswer } from './question-texts.js'
import { OpenQuestions, openQuestions } from './open-questions.js'
import type { TaskRegistry } from '../registry.js'
import { steps } from '../steps/steps.js'

const askOptionTypes: OptionTypes<AskOptions> = {
  name: aName,
  signal: { expected: 'an AbortSignal', accepts: (value) => value instanceof AbortSignal },
}

/**
 * Asks a question for a task's run.
 * @returns resolves with the answer; rejects if the task ends or is overdue, or the question is malformed
 */
export function askQuestion(
  registry: TaskRegistry,
  entry: TaskEntry,
  input: TaskQuestionInput,
  options: AskOptions = {},
): Promise<TaskAnswer> {
  const asked = new Promise<TaskAnswer>((resolve) => {
    const question = toQuestion(registry, input, options)
    options.signal?.throwIfAborted()
    resolve(registry.batch(() => open(registry, entry, question, options.signal)))
  })
  // A run that does not await the answer must not cause an unhandled rejection.
  asked.catch(() => undefined)
  return asked
}

/**
 * Converts the input of `ask`.
 * @throws InvalidInputError
 */
export function toQuestion({ clock }: TaskRegistry, input: TaskQuestionInput, options: AskOptions): AskedQuestion {
  const { message, schema } = parseInput(taskQuestionSchema(), input, 'question')
  checkOptions(options, askOptionTypes)
  return { message, schema, askedAt: clock.now() }
}

/** Opens a question. Returns its id, or undefined if the task may not ask, for example because it is being stopped. */
export function openQuestion(entry: TaskEntry, question: AskedQuestion): string | undefined {
  const before = entry.record.questions?.length ?? 0
  entry.ref?.send({ type: 'task.ask', question })
  return entry.record.questions?.[before]?.id
}

function open(
  registry: TaskRegistry,
  entry: TaskEntry,
  question: AskedQuestion,
  signal: AbortSignal | undefined,
): Promise<TaskAnswer> {
  const id = openQuestion(entry, question)
  if (id === undefined) throw new QuestionWithdrawnError(entry.record.id)
  const answered = openQuestions.ensure(entry, () => new OpenQuestions()).wait(id)
  if (signal === undefined) return answered
  const withdraw = (): void => registry.batch(() => entry.ref?.send({ type: 'task.answer', questionId: id }))
  signal.addEventListener('abort', withdraw, { once: true })
  return answered.finally(() => signal.removeEventListener('abort', withdraw))
}

/** A model's answer: the value of a question's only field, or an object with the fields. */
export type AnswerValue = string | number | boolean | Readonly<Record<string, unknown>>

/** An object with an `action` is a complete answer. */
const isValue = (input: unknown): input is AnswerValue =>
  ['string', 'number', 'boolean'].includes(typeof input) ||
  (typeof input === 'object' && input !== null && !Array.isArray(input) && !('action' in input))

const answerWith = (question: TaskQuestion, value: AnswerValue): TaskAnswer =>
  typeof value === 'string' ? writtenAnswer(question, value) : valueAnswer(question, value)

/**
 * Answers an open question of a task.
 * @returns false if no such question is open
 * @throws InvalidInputError for an answer that is malformed or does not match the question's schema
 */
export function answerQuestion(
  registry: TaskRegistry,
  entry: TaskEntry,
  questionId: string,
  input: TaskAnswer | AnswerValue,
): boolean {
  const find = (): TaskQuestion | undefined => entry.record.questions?.find(({ id }) => id === questionId)
  const asked = find()
  if (isValue(input) && asked === undefined) return false
  const given = isValue(input) && asked !== undefined ? answerWith(asked, input) : input
  // A plain copy, so that no host code can run between here and the answer.
  const answer = Object.freeze(parseInput(taskAnswerSchema(), given, 'answer')) as TaskAnswer
  const question = find()
  if (question === undefined) return false
  if (answer.action === 'accept') parseInput(answerSchemaOf(question.schema), answer.content ?? {}, 'answer.content')
  registry.batch(() => {
    // The run of a durable task continues when its step has the answer. Both are stored together.
    registry.use(steps).answered(entry, questionId, answer)
    registry.send({ type: 'question.answer', entry, questionId, answer })
    openQuestions.get(entry)?.answer(questionId, answer)
  })
  return true
}
