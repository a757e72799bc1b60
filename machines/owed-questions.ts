/**
 * The open questions of all tasks and their delivery (`owed -> leased -> delivered`, as for results; promise F6). A question stays here until it is
 * answered or withdrawn. It does not prevent the pruning of a record, and does not delay the end of a task.
 */
import type { OwedQuestion, QuestionStanding, TaskEntry } from './task-entry.js'

export interface QuestionRef {
  readonly taskId: string
  /** The id of the question within its task. */
  readonly questionId: string
}

export interface OwedQuestionsOptions {
  readonly addresseeOf: (entry: TaskEntry) => string
  /** Called when a question becomes owed. */
  readonly onOwed: (owner: string) => void
  /** Called when the stored state of a task's questions has changed. */
  readonly onChanged?: ((entry: TaskEntry) => void) | undefined
}

/** Keeps the open questions, in the order in which they were asked. */
export class OwedQuestions {
  readonly #options: OwedQuestionsOptions
  readonly #open = new Set<OwedQuestion>()

  constructor(options: OwedQuestionsOptions) {
    this.#options = options
  }

  owed(owner?: string): OwedQuestion[] {
    if (this.#open.size === 0) return []
    return [...this.#open].filter(
      (question) => question.delivery === 'owed' && (owner === undefined || question.owner === owner),
    )
  }

  /** Returns the delivery states of a task's open questions for the store, by the ids of the questions. */
  standings(entry: TaskEntry): Readonly<Record<string, QuestionStanding>> {
    const asked = [...this.#open].filter((question) => question.entry === entry)
    const standing = ({ delivery, deliveryId, isRepeat, repeatOf }: OwedQuestion): QuestionStanding => ({
      ...(delivery === 'delivered' && { deliveredBy: deliveryId }),
      ...(isRepeat && { isRepeat }),
      ...(repeatOf !== undefined && { repeatOf }),
    })
    return Object.fromEntries(asked.map((question) => [question.id, standing(question)]))
  }

  /** Updates who receives each question. Called when all tasks of an earlier process are restored. */
  address(): void {
    for (const question of this.#open) question.owner = this.#options.addresseeOf(question.entry)
  }

  /**
   * Updates the questions of a task after its record has changed.
   * @param standings the delivery states of its questions in the last process
   */
  update(entry: TaskEntry, standings: Readonly<Record<string, QuestionStanding>> = {}): void {
    const { questions } = entry.record
    if (questions === undefined && this.#open.size === 0) return
    const ids = new Set(questions?.map(({ id }) => id))
    for (const question of this.#open) {
      if (question.entry === entry && !ids.delete(question.id)) this.#open.delete(question)
    }
    for (const id of ids) {
      const owner = this.#options.addresseeOf(entry)
      const { deliveredBy: deliveryId, isRepeat = false, repeatOf } = standings[id] ?? {}
      const delivery = deliveryId === undefined ? 'owed' : 'delivered'
      this.#open.add({ entry, id, owner, delivery, deliveryId, isAccepted: false, isRepeat, repeatOf })
      if (delivery === 'owed') this.#options.onOwed(owner)
    }
  }

  /** Adds those of these questions that are owed to a message. Returns them. */
  take(refs: readonly QuestionRef[], deliveryId: string, owner?: string): OwedQuestion[] {
    if (refs.length === 0) return []
    const taken = this.owed(owner).filter(({ entry, id }) =>
      refs.some(({ taskId, questionId }) => taskId === entry.record.id && questionId === id),
    )
    for (const question of taken) {
      question.delivery = 'leased'
      question.deliveryId = deliveryId
    }
    return taken
  }

  /** The repeat of a message is sent. Questions that it lacks get another id (`Ledger`). */
  part(deliveryId: string): void {
    for (const question of this.#open) {
      if (question.repeatOf !== deliveryId || question.delivery === 'leased') continue
      question.repeatOf = undefined
      this.#options.onChanged?.(question.entry)
    }
  }

  deliver(questions: Iterable<OwedQuestion>): void {
    for (const question of questions) {
      if (question.delivery === 'leased') this.#set(question, 'delivered')
    }
  }

  /**
   * Handles a message that was accepted after its lease was released. If another message carries the same questions, they need not be delivered again.
   */
  acceptLate(questions: Iterable<OwedQuestion>): void {
    for (const question of questions) {
      if (question.delivery === 'owed') this.#set(question, 'delivered')
      question.isAccepted = true
    }
  }

  /**
   * Makes these questions owed again if they are still open, because their message was not accepted. With `isUncertain` they are marked as possible
   * repeats, which belong together.
   */
  return(questions: Iterable<OwedQuestion>, isUncertain = false): void {
    for (const question of questions) {
      if (question.delivery !== 'leased') continue
      if (isUncertain) {
        question.isRepeat = true
        question.repeatOf = question.deliveryId
      }
      this.#set(question, question.isAccepted ? 'delivered' : 'owed')
      if (!question.isAccepted && this.#open.has(question)) this.#options.onOwed(question.owner)
    }
  }

  /** Makes the open questions of a delivered message owed again. Returns their number. */
  repeat(deliveryId: string): number {
    const again = [...this.#open].filter(
      (question) => question.deliveryId === deliveryId && question.delivery === 'delivered',
    )
    for (const question of again) {
      question.isRepeat = true
      this.#set(question, 'owed')
      question.isAccepted = false
      this.#options.onOwed(question.owner)
    }
    return again.length
  }

  #set(question: OwedQuestion, delivery: OwedQuestion['delivery']): void {
    question.delivery = delivery
    if (delivery === 'delivered') question.repeatOf = undefined
    this.#options.onChanged?.(question.entry)
  }

  /**
   * Transfers the questions of an owner to its heir. Without an heir, nobody receives them.
   * @param ids the tasks whose questions are transferred; default: all
   */
  releaseOwner(owner: string, heir: string | undefined, ids?: ReadonlySet<string>): void {
    for (const question of this.#open) {
      if (question.owner !== owner || ids?.has(question.entry.record.id) === false) continue
      if (heir === undefined) {
        question.delivery = 'none'
        continue
      }
      question.owner = heir
      if (question.delivery === 'owed') this.#options.onOwed(heir)
    }
  }
}

export const refOf = ({ entry, id }: OwedQuestion): QuestionRef => ({ taskId: entry.record.id, questionId: id })
