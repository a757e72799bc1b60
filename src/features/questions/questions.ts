/** Asks the questions of runs, and passes the answers to the runs. */
import type { AskedQuestion, TaskAnswer, TaskQuestion } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import type { AskOptions } from '../../engine/steps.js'
import { QuestionWithdrawnError } from '../../errors.js'
import { anAbortSignal, aName, checkOptions, type OptionTypes } from '../../protocol/option-checks.js'
import { parseInput } from '../../protocol/parse.js'
import {
  answerSchemaOf,
  taskAnswerSchema,
  taskQuestionSchema,
  type TaskQuestionInput,
} from '../../protocol/task-questions.js'
import { writtenAnswer, valueAnswer } from './question-texts.js'
import { OpenQuestions, openQuestions } from './open-questions.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { steps } from '../steps/steps.js'

const askOptionTypes: OptionTypes<AskOptions> = {
  name: aName,
  signal: anAbortSignal,
}

/**
 * Asks a question for the run of a task.
 * @returns a promise of the answer. It rejects if the question is malformed, and if the task ends or is overdue
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
 * Converts the arguments of `context.ask` to a question.
 * @throws INVALID_INPUT
 */
export function toQuestion({ clock }: TaskRegistry, input: TaskQuestionInput, options: AskOptions): AskedQuestion {
  const { message, schema } = parseInput(taskQuestionSchema(), input, 'question')
  checkOptions(options, askOptionTypes)
  return { message, schema, askedAt: clock.now() }
}

/** Adds a question to the record of a task. Returns its id. Returns undefined if the task may not ask, for example because it is being stopped. */
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

/** An answer as a model writes it: the value of the question's only field, or an object with the fields. */
export type AnswerValue = string | number | boolean | Readonly<Record<string, unknown>>

/** An object with an `action` is no `AnswerValue` but a complete `TaskAnswer`. */
const isValue = (input: unknown): input is AnswerValue =>
  ['string', 'number', 'boolean'].includes(typeof input) ||
  (typeof input === 'object' && input !== null && !Array.isArray(input) && !('action' in input))

const answerWith = (question: TaskQuestion, value: AnswerValue): TaskAnswer =>
  typeof value === 'string' ? writtenAnswer(question, value) : valueAnswer(question, value)

/**
 * Answers an open question of a task.
 * @returns false if no such question is open
 * @throws INVALID_INPUT for an answer that is malformed or does not match the question's schema
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
  // The answer is copied to a plain object, because getters of the original could run host code below.
  const answer = Object.freeze(parseInput(taskAnswerSchema(), given, 'answer')) as TaskAnswer
  const question = find()
  if (question === undefined) return false
  if (answer.action === 'accept') parseInput(answerSchemaOf(question.schema), answer.content ?? {}, 'answer.content')
  registry.batch(() => {
    // If a step of a durable task waits for the answer, the step and the question are stored together. The run continues when both are stored.
    registry.use(steps).answered(entry, questionId, answer)
    registry.send({ type: 'question.answer', entry, questionId, answer })
    openQuestions.get(entry)?.answer(questionId, answer)
  })
  return true
}
