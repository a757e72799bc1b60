/** The stored open questions of a durable task. */
import { z } from 'zod'
import type { QuestionRef } from '../../../machines/owed-questions.js'
import type { TaskQuestion } from '../../../machines/records.js'
import type { QuestionStanding } from '../../../machines/task-entry.js'
import { lazily } from '../../protocol/lazily.js'
import type { StoredTask } from '../../store/store.js'
import type { FoundRow } from './stored-run.js'
import type { StepLog } from '../../features/steps/step-log.js'

const questionSchema = lazily(() =>
  z.object({ id: z.string(), message: z.string(), schema: z.record(z.string(), z.unknown()), askedAt: z.number() }),
)

const standingsSchema = lazily(() =>
  z.record(
    z.string(),
    z.object({
      deliveredBy: z.string().optional(),
      isRepeat: z.boolean().optional(),
      repeatOf: z.string().optional(),
    }),
  ),
)

/** Returns the questions in a stored record, without those that are malformed. */
export function readQuestions({ questions }: StoredTask['record']): readonly TaskQuestion[] {
  if (!Array.isArray(questions)) return []
  return questions.flatMap((question) => questionSchema().safeParse(question).data ?? [])
}

/** Returns the questions to which a step waits for the answer. */
export function storedQuestions(
  { record }: Pick<StoredTask, 'record'>,
  log: StepLog | undefined,
): readonly TaskQuestion[] {
  if (log === undefined) return []
  const read = readQuestions(record)
  return Object.freeze(read.filter(({ id }) => log.asking(id) !== undefined).map((question) => Object.freeze(question)))
}

/** @param asked the keys of questions that must not be delivered yet, because it is unknown whether their messages arrived */
export function storedStandings(
  { id: taskId, run }: Pick<FoundRow, 'id' | 'run'>,
  asked: ReadonlySet<string>,
): Readonly<Record<string, QuestionStanding>> {
  const { data = {} } = standingsSchema().safeParse(run.questions)
  return Object.fromEntries(
    Object.entries(data).map(([questionId, standing]) =>
      asked.has(questionKey({ taskId, questionId }))
        ? [questionId, { ...standing, deliveredBy: undefined }]
        : [questionId, standing],
    ),
  )
}

export const questionKey = ({ taskId, questionId }: QuestionRef): string => JSON.stringify([taskId, questionId])
