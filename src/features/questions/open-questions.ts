/** The promises of questions (`context.ask`), which a run awaits. */
import { TaskData } from '../../../machines/task-data.js'
import type { AsyncTaskInfo, TaskAnswer } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { QuestionWithdrawnError } from '../../errors.js'
import type { Feature } from '../../async-tasks/feature.js'

interface Asking {
  readonly resolve: (answer: TaskAnswer) => void
  readonly reject: (reason: unknown) => void
}

export class OpenQuestions {
  readonly #waiting = new Map<string, Asking>()

  /** Resolves with the answer to an open question. Rejects when the question is withdrawn. */
  wait(questionId: string): Promise<TaskAnswer> {
    return new Promise((resolve, reject) => this.#waiting.set(questionId, { resolve, reject }))
  }

  answer(questionId: string, answer: TaskAnswer): void {
    this.#waiting.get(questionId)?.resolve(answer)
    this.#waiting.delete(questionId)
  }

  /** Rejects the promises of questions that the record of the task no longer contains. */
  withdraw({ id, questions = [] }: Pick<AsyncTaskInfo, 'id' | 'questions'>): void {
    const open = new Set(questions.map((question) => question.id))
    for (const [questionId, { reject }] of this.#waiting) {
      if (open.has(questionId)) continue
      this.#waiting.delete(questionId)
      reject(new QuestionWithdrawnError(id))
    }
  }
}

export const openQuestions = new TaskData<OpenQuestions>()

const withdraw = (entry: TaskEntry): void => openQuestions.get(entry)?.withdraw(entry.record)

export const questionWithdrawal = (): Feature => ({
  changed: withdraw,
  ended: withdraw,
  // The questions of a run that is left stay open: the next process asks them again.
  suspended: (entry, how) => {
    if (how !== 'left') openQuestions.get(entry)?.withdraw({ id: entry.record.id })
  },
})
