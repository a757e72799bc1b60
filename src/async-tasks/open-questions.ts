/** What one task's run has asked and not been told: the promises it waits for, and how they end. */
import type { AsyncTaskInfo, TaskAnswer } from '../../machines/records.js'
import { QuestionWithdrawnError } from '../errors.js'

interface Asking {
  readonly resolve: (answer: TaskAnswer) => void
  readonly reject: (reason: unknown) => void
}

/** The questions of one task. */
export class OpenQuestions {
  readonly #waiting = new Map<string, Asking>()

  /** Waits for the answer to a question that is open. */
  wait(questionId: string): Promise<TaskAnswer> {
    return new Promise((resolve, reject) => this.#waiting.set(questionId, { resolve, reject }))
  }

  answer(questionId: string, answer: TaskAnswer): void {
    this.#waiting.get(questionId)?.resolve(answer)
    this.#waiting.delete(questionId)
  }

  /** Gives up what is no longer open. */
  withdraw({ id, questions = [] }: AsyncTaskInfo): void {
    for (const [questionId, { reject }] of this.#waiting) {
      if (questions.some((question) => question.id === questionId)) continue
      this.#waiting.delete(questionId)
      reject(new QuestionWithdrawnError(id))
    }
  }
}
