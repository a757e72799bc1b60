/** Collects what the runs of a property reached: a property that never reaches a state proves nothing about it. */
import type { LaneStep } from './commands.js'

const kinds = [
  'actions',
  'byListeners',
  'statuses',
  'commandStatuses',
  'events',
  'submitCodes',
  'errorCodes',
  'reports',
] as const

type Kind = (typeof kinds)[number]

export function createReach() {
  const seen = new Map<Kind, Set<string>>(kinds.map((kind) => [kind, new Set()]))
  const add = (kind: Kind, what: string): void => void seen.get(kind)?.add(what)
  return {
    add: ({ action, answer, log, view }: LaneStep): void => {
      if (typeof action !== 'string') add('actions', action.do)
      addRefusal(answer)
      for (const entry of log) {
        if ('did' in entry) {
          add('byListeners', entry.did)
          addRefusal(entry.answer)
        } else if ('reported' in entry) add('reports', entry.reported)
        else if ('ended' in entry) add('events', 'the end of a stream')
        else {
          const { event } = entry
          if (event.error !== undefined) add('errorCodes', event.error.code)
          const isReport = event.type === 'task_progress' && event.progress !== undefined
          add('events', isReport ? 'a report of progress' : `${event.type} ${event.status}`)
        }
      }
      for (const { status, commands } of view.tasks) {
        add('statuses', status)
        for (const command of commands) add('commandStatuses', command.status)
      }
    },
    reached: () =>
      Object.fromEntries(kinds.map((kind) => [kind, [...(seen.get(kind) ?? [])].sort()])) as Record<Kind, string[]>,
  }

  function addRefusal(answer: LaneStep['answer']): void {
    const returned = answer !== undefined && 'returned' in answer ? answer.returned : undefined
    if (typeof returned === 'object' && returned !== null && 'code' in returned) {
      add('submitCodes', String(returned.code))
    }
  }
}
