/** Questions that tasks ask (promise F6). The ledger delivers them. */
import type { ActiveTimes } from '../active-times.js'
import { isTerminal, type TaskEntry } from '../task-entry.js'
import { withQuestions } from '../task-record.js'
import { holdsSlot } from '../task-status.js'
import type { Earlier, EventOf, Handlers, RegistryCore, RegistryPart, Scope } from './part.js'

export class QuestionsPart implements RegistryPart {
  readonly #core: RegistryCore
  readonly #active: ActiveTimes
  readonly #onNoted: ((entry: TaskEntry) => void) | undefined

  constructor(core: RegistryCore, active: ActiveTimes, onNoted: ((entry: TaskEntry) => void) | undefined) {
    this.#core = core
    this.#active = active
    this.#onNoted = onNoted
  }

  readonly on: Handlers<'question.answer' | 'questions.address' | 'task.questions'> = {
    'question.answer': ({ entry, questionId, answer }, { defer }) => {
      this.#core.changes.answer(entry, questionId, answer)
      defer(() => entry.ref?.send({ type: 'task.answer', questionId }))
    },
    'questions.address': () => {
      this.#core.ledger.questions.address()
    },
    'task.questions': (event) => {
      this.#set(event)
    },
  }

  add(entry: TaskEntry, _scope: Scope, earlier?: Earlier): void {
    if (earlier !== undefined) this.#core.ledger.questions.update(entry, earlier.durable?.standings)
  }

  #set({ taskId, questions }: EventOf<'task.questions'>): void {
    const { history, changes, ledger } = this.#core
    const entry = history.get(taskId)
    if (entry === undefined || isTerminal(entry.record)) return
    const isDurable = this.#active.has(entry)
    if (!holdsSlot(entry.record.status) && !isDurable) return
    entry.record = withQuestions(entry.record, questions)
    changes.questions(entry)
    ledger.questions.update(entry)
    if (isDurable) this.#onNoted?.(entry)
  }
}
