/** Asks the questions of runs, and answers them. */
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
 * @returns resolves with the answer; rejects when the task ends or is overdue, or the question is malformed
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
  // A run that does not await the answer must not end the process when the question is withdrawn.
  asked.catch(() => undefined)
  return asked
}

/** The question of a call of `ask`. @throws InvalidInputError */
export function toQuestion({ clock }: TaskRegistry, input: TaskQuestionInput, options: AskOptions): AskedQuestion {
  const { message, schema } = parseInput(taskQuestionSchema(), input, 'question')
  checkOptions(options, askOptionTypes)
  return { message, schema, askedAt: clock.now() }
}

/** Opens a question. Returns its id; undefined when the task does not ask, as one that is being stopped. */
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

/** What a model may answer: the value of a question's only field, or the fields of its answer. */
export type AnswerValue = string | number | boolean | Readonly<Record<string, unknown>>

/** An object with an `action` is a whole answer. */
const isValue = (input: unknown): input is AnswerValue =>
  ['string', 'number', 'boolean'].includes(typeof input) ||
  (typeof input === 'object' && input !== null && !Array.isArray(input) && !('action' in input))

const answerWith = (question: TaskQuestion, value: AnswerValue): TaskAnswer =>
  typeof value === 'string' ? writtenAnswer(question, value) : valueAnswer(question, value)

/**
 * Answers an open question of a task.
 * @returns false, with nothing changed, when no such question is open
 * @throws InvalidInputError for an answer that is malformed, or that does not match the schema of its question
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
  // A copy of plain data: no code of the host runs between here and the answer.
  const answer = Object.freeze(parseInput(taskAnswerSchema(), given, 'answer')) as TaskAnswer
  const question = find()
  if (question === undefined) return false
  if (answer.action === 'accept') parseInput(answerSchemaOf(question.schema), answer.content ?? {}, 'answer.content')
  registry.batch(() => {
    // The run of a durable task goes on when its step has the answer: both are stored together.
    registry.use(steps).answered(entry, questionId, answer)
    registry.send({ type: 'question.answer', entry, questionId, answer })
    openQuestions.get(entry)?.answer(questionId, answer)
  })
  return true
}
