/** Faults of questions, messages and repeats (F6, F7, F11): the races of `talk.property.ts` must find each. */
import type { OwedQuestion } from '../../machines/task-entry.js'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { inboxes, type Inbox } from '../../src/features/questions/inbox.js'
import type { TalkSabotage } from './talk.property.js'

export interface TalkFault extends TalkSabotage {
  /** What is wrong, in kebab case. */
  readonly name: string
  readonly invariant: 'F6' | 'F7' | 'F11'
  readonly description: string
}

/** Changes how each task's messages are accepted. */
function withInbox(accept: (message: string, inbox: Inbox['accept']) => ReturnType<Inbox['accept']>) {
  return (manager: AsyncTaskManager): void => {
    const send = manager.sendToTask.bind(manager)
    const changed = new WeakSet<Inbox>()
    manager.sendToTask = (id, text) => {
      const entry = manager.registry.history.get(id)
      const inbox = entry && inboxes.get(entry)
      if (inbox !== undefined && !changed.has(inbox)) {
        changed.add(inbox)
        const original = inbox.accept.bind(inbox)
        inbox.accept = (message) => accept(message, original)
      }
      return send(id, text)
    }
  }
}

export const talkFaults: readonly TalkFault[] = [
  {
    name: 'question-told-twice',
    invariant: 'F6',
    description: 'a question of an accepted message is owed again',
    breakManager: ({ registry: { ledger } }) => {
      ledger.questions.deliver = (questions) => ledger.questions.return(questions)
    },
  },
  {
    name: 'refused-question-forgotten',
    invariant: 'F6',
    description: 'a question of a message that was not accepted is not told again',
    breakManager: ({ registry: { ledger } }) => {
      ledger.questions.return = (questions) => ledger.questions.deliver(questions)
    },
  },
  {
    name: 'question-told-after-its-answer',
    invariant: 'F6',
    description: 'a question that was answered stays owed, and is handed out',
    breakManager: (manager) => {
      const { questions } = manager.registry.ledger
      const take = questions.take.bind(questions)
      const answered: OwedQuestion[] = []
      const answer = manager.answerTask.bind(manager)
      manager.answerTask = (taskId, questionId, given) => {
        const entry = manager.registry.history.get(taskId)
        if (entry !== undefined) {
          const { owner } = entry.record
          const standing = { delivery: 'leased', deliveryId: undefined, isAccepted: false } as const
          answered.push({ entry, id: questionId, owner, ...standing, isRepeat: false, repeatOf: undefined })
        }
        return answer(taskId, questionId, given)
      }
      questions.take = (refs, deliveryId, owner) => {
        const taken = take(refs, deliveryId, owner)
        return deliveryId.startsWith('delivery') ? [...taken, ...answered] : taken
      }
    },
  },
  {
    name: 'second-answer-counts',
    invariant: 'F6',
    description: 'whoever answers a question once more is told that the answer counts',
    breakManager: (manager) => {
      const answer = manager.answerTask.bind(manager)
      const answered = new Set<string>()
      manager.answerTask = (taskId, questionId, given) => {
        const name = `${taskId} ${questionId}`
        const counts = answer(taskId, questionId, given) || answered.has(name)
        if (counts) answered.add(name)
        return counts
      }
    },
  },
  {
    name: 'message-taken-twice',
    invariant: 'F7',
    description: 'a message is handed to the run twice',
    breakManager: withInbox((message, accept) => accept(message) ?? accept(message)),
  },
  {
    name: 'messages-out-of-order',
    invariant: 'F7',
    description: 'a message overtakes the one before it',
    breakManager: (manager) => {
      let held: string | undefined
      withInbox((message, accept) => {
        if (held === undefined) {
          held = message
          return undefined
        }
        const earlier = held
        held = undefined
        accept(message)
        return accept(earlier)
      })(manager)
    },
  },
  {
    name: 'redeliver-of-what-is-gone',
    invariant: 'F11',
    description: 'redeliver says true when nothing of the message is left',
    breakManager: (manager) => {
      const { ledger } = manager.registry
      const repeat = ledger.repeat.bind(ledger)
      ledger.repeat = (...args) => {
        repeat(...args)
        return true
      }
    },
  },
  {
    name: 'rider-never-acknowledged',
    invariant: 'F11',
    description: 'what rode on the result of a tool is never delivered',
    breakManager: ({ registry: { ledger } }) => {
      const acknowledge = ledger.acknowledge.bind(ledger)
      ledger.acknowledge = (id, carried) => {
        const isRider = id.startsWith('delivery') && ledger.lease(id)?.exclusiveOwner === undefined
        if (!isRider) acknowledge(id, carried)
      }
    },
  },
]
