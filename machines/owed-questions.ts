/**
 * The open questions of all tasks, and which of them their owners have still to be told of: `owed -> leased -> delivered`, as results are
 * (F6). A question is here until it is answered or withdrawn; it keeps no record, and holds back no end.
 */
import type { OwedQuestion, QuestionStanding, TaskEntry } from './task-entry.js'

/** Names a question. */
export interface QuestionRef {
  /** The task that asks. */
  readonly taskId: string
  /** The id of the question within its task. */
  readonly questionId: string
}

/** What the open questions need of the ledger. */
export interface OwedQuestionsOptions {
  /** To whom the questions of a task are delivered. */
  readonly addresseeOf: (entry: TaskEntry) => string
  /** A question has become owed. */
  readonly onOwed: (owner: string) => void
  /** What is stored of the questions of a task has changed. */
  readonly onChanged?: ((entry: TaskEntry) => void) | undefined
}

/** Keeps the open questions, in the order in which they were asked. */
export class OwedQuestions {
  readonly #options: OwedQuestionsOptions
  readonly #open = new Set<OwedQuestion>()

  constructor(options: OwedQuestionsOptions) {
    this.#options = options
  }

  /** What is owed and in no lease. */
  owed(owner?: string): OwedQuestion[] {
    if (this.#open.size === 0) return []
    return [...this.#open].filter(
      (question) => question.delivery === 'owed' && (owner === undefined || question.owner === owner),
    )
  }

  /** What is to be stored of the open questions of a task, by their ids. */
  standings(entry: TaskEntry): Readonly<Record<string, QuestionStanding>> {
    const asked = [...this.#open].filter((question) => question.entry === entry)
    const standing = ({ delivery, deliveryId, isRepeat }: OwedQuestion): QuestionStanding => ({
      ...(delivery === 'delivered' && { deliveredBy: deliveryId }),
      ...(isRepeat && { isRepeat }),
    })
    return Object.fromEntries(asked.map((question) => [question.id, standing(question)]))
  }

  /** Finds out again to whom the questions are owed. */
  address(): void {
    for (const question of this.#open) question.owner = this.#options.addresseeOf(question.entry)
  }

  /**
   * The questions of a record have changed, or its task has ended.
   * @param standings how the last process had left them
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
      const { deliveredBy: deliveryId, isRepeat = false } = standings[id] ?? {}
      const delivery = deliveryId === undefined ? 'owed' : 'delivered'
      this.#open.add({ entry, id, owner, delivery, deliveryId, isAccepted: false, isRepeat })
      if (delivery === 'owed') this.#options.onOwed(owner)
    }
  }

  /** Takes those of these questions that are owed, for one message. */
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

  /** The message was accepted. */
  deliver(questions: Iterable<OwedQuestion>): void {
    for (const question of questions) {
      if (question.delivery === 'leased') this.#set(question, 'delivered')
    }
  }

  /** A message was accepted after its lease had ended: another one that carries them is not repeated. */
  acceptLate(questions: Iterable<OwedQuestion>): void {
    for (const question of questions) {
      if (question.delivery === 'owed') this.#set(question, 'delivered')
      question.isAccepted = true
    }
  }

  /** The message was not accepted: what is still open is owed again. If that is uncertain, it is marked as a possible repeat. */
  return(questions: Iterable<OwedQuestion>, isUncertain = false): void {
    for (const question of questions) {
      if (question.delivery !== 'leased') continue
      if (isUncertain) question.isRepeat = true
      this.#set(question, question.isAccepted ? 'delivered' : 'owed')
      if (!question.isAccepted && this.#open.has(question)) this.#options.onOwed(question.owner)
    }
  }

  /** Owes what a message has delivered once more, as far as it is open. Returns how many questions that are. */
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
    this.#options.onChanged?.(question.entry)
  }

  /** An owner is gone: its heir is told, or nobody. */
  releaseOwner(owner: string, heir: string | undefined): void {
    for (const question of this.#open) {
      if (question.owner !== owner) continue
      if (heir === undefined) {
        question.delivery = 'none'
        continue
      }
      question.owner = heir
      if (question.delivery === 'owed') this.#options.onOwed(heir)
    }
  }
}

/** The name of a question. */
export const refOf = ({ entry, id }: OwedQuestion): QuestionRef => ({ taskId: entry.record.id, questionId: id })
