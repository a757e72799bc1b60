/** Copies the async tasks of an AsyncTaskManager into the journal. */
import { holdsSlot, startsOrEndsRun, isWaiting } from '../../machines/task-status.js'
import type { Subscription } from 'rxjs'
import type { RegistryNotification } from '../../machines/change-feed.js'
import { timeoutMessage, type AsyncTaskSnapshot } from '../../machines/async-task.js'
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import type { DeliveryTransition, OwnerTransition, TaskTransition } from '../../machines/transitions.js'
import { isTerminal, type TaskEntry } from '../../machines/task-entry.js'
import { runTraces } from '../async-tasks/run-operation.js'
import { launches } from '../async-tasks/run-plan.js'
import { taskEvents } from '../async-tasks/task-events.js'
import { onceStopped, stoppingMs } from '../features/stopping/stopping.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { AsyncEntry, asyncKey } from './async-entry.js'
import { CLOSED_WORDS, closedQuestion } from './closed-questions.js'
import { furtherOf, type FurtherInput } from './launched-input.js'
import type { Happening, Journal } from './journal.js'
import type { PageEntry } from './page-entry.js'
import type { PageTaskState } from './wire.js'

export interface AsyncSourceOptions {
  readonly manager: AsyncTaskManager
  readonly journal: Journal<PageEntry>
  /** The maximum size of what the journal keeps of one ended task, in bytes. */
  readonly maxTaskBytes: number
  readonly now: () => number
  /** Called after each transition of a task, and once without a transition for each task that exists at the start. */
  readonly onTransition: (entry: AsyncEntry, transition: TaskTransition | undefined) => void
  /** Called when the delivery or the owner of a task changes and the journal no longer has the task. */
  readonly onForgotten: (transition: DeliveryTransition | OwnerTransition) => void
  /** Called after a report, a question, a change of a limit, or a move to the background. */
  readonly onOther: () => void
}

/** Copies the tasks of a manager into the journal and keeps them up to date. Returns a function that stops this. */
export function followAsyncTasks(options: AsyncSourceOptions): () => void {
  const { manager, journal, now } = options
  const { reads } = manager
  /** The answer that was reported last. The next change of the open questions shows which question it closes. */
  let answered: Extract<RegistryNotification, { type: 'answer' }> | undefined

  const find = (id: string): AsyncEntry | undefined => {
    const entry = journal.get(asyncKey(id))
    return entry?.kind === 'async' ? entry : undefined
  }
  const add = (record: AsyncTaskInfo): AsyncEntry => {
    const retained = reads.history.get(record.id)
    const entry = new AsyncEntry(record, stateOf(record, retained?.ref?.getSnapshot()))
    journal.add(entry)
    if (record.parentId !== undefined) find(record.parentId)?.addChild(entry.key)
    for (const id of record.after ?? []) find(id)?.addNeededBy(entry.key)
    return entry
  }
  const inputOf = (retained: TaskEntry | undefined): FurtherInput => {
    const launched = retained && launches.get(retained)
    return launched === undefined
      ? omitUndefined({ params: retained && (reads.persistence?.runOf(retained).params ?? undefined) })
      : furtherOf(launched)
  }
  const end = (entry: AsyncEntry, record: SettledTaskInfo): void => {
    const retained = reads.history.get(record.id)
    entry.keep(record, options.maxTaskBytes, inputOf(retained), retained && runTraces.get(retained))
    entry.stopsWithinMs = stoppingMs(reads, record.id)
    journal.end(entry)
    if (entry.stopsWithinMs === undefined) return
    onceStopped(reads, record.id, () => {
      entry.stopsWithinMs = undefined
      journal.update(entry, { at: now(), event: 'its program has ended' })
    })
  }

  for (const record of manager.getAllTasks()) {
    const entry = add(record)
    const { state } = entry
    for (const happening of earlierHappenings(record)) journal.update(entry, happening)
    if (entry.state !== state) journal.update(entry, { at: now(), state })
    options.onTransition(entry, undefined)
    if (isTerminal(record)) end(entry, record)
  }

  const onTransition = (transition: TaskTransition): void => {
    const { record, taskId } = transition
    let entry = find(taskId)
    if (transition.kind === 'history') return
    const isNew = entry === undefined || (transition.kind === 'status' && transition.from === null)
    // A task that the journal has dropped is not added again, even if the manager still has it.
    if (entry === undefined && transition.kind !== 'status') {
      options.onForgotten(transition)
      return
    }
    if (isNew && (transition.kind !== 'status' || transition.from !== null)) return
    if (entry === undefined || isNew) entry = add(record)
    entry.set(record)
    journal.update(entry, happeningOf(transition))
    options.onTransition(entry, transition)
    // The manager may remove the task right after this event, so the journal copies its values now.
    if (isTerminal(record) && !entry.isEnded) end(entry, record)
  }

  const subscriptions: Subscription[] = [
    manager.transitions$.subscribe(onTransition),
    reads.use(taskEvents).reports$.subscribe(({ record }) => {
      const entry = find(record.id)
      if (entry === undefined || entry.isEnded) return
      entry.set(record)
      journal.update(entry)
      options.onOther()
    }),
    manager.questions$.subscribe(({ taskId, questions }) => {
      const entry = find(taskId)
      const record = manager.getTask(taskId)
      if (entry === undefined || record === undefined || entry.isEnded) return
      const before = entry.record.questions ?? []
      entry.record = { ...entry.record, questions } as AsyncTaskInfo
      const known = new Set(before.map(({ id }) => id))
      const open = new Set(questions.map(({ id }) => id))
      const state = questions.length > 0 ? 'asking' : 'running'
      for (const question of questions) {
        if (known.has(question.id)) continue
        journal.update(entry, {
          at: question.askedAt,
          event: 'asked',
          detail: question.message,
          mark: 'question',
          state,
        })
      }
      for (const question of before) {
        if (open.has(question.id)) continue
        const at = now()
        const isAnswered = answered?.questionId === question.id && answered.entry.record.id === taskId
        const answer = closedQuestion(question, isAnswered ? answered?.answer : undefined, at)
        const event = CLOSED_WORDS[answer.action]
        journal.update(entry, { at, event, detail: question.message, mark: 'answer', state, answer })
      }
      options.onOther()
    }),
    reads.notifications$.subscribe((notification) => {
      if (notification.type === 'answer') answered = notification
      if (notification.type !== 'limit' && notification.type !== 'detached') return
      const entry = find(notification.entry.record.id)
      if (entry === undefined || entry.isEnded) return
      if (notification.type === 'detached') {
        entry.set(notification.entry.record)
        journal.update(entry, { at: now(), event: 'moved to the background' })
        options.onOther()
        return
      }
      const { state } = notification
      journal.update(entry, { at: now(), event: state, state })
      options.onOther()
    }),
  ]
  return () => subscriptions.forEach((subscription) => subscription.unsubscribe())
}

/** @param snapshot the state of the task's machine; undefined once the task has ended */
function stateOf(record: AsyncTaskInfo, snapshot?: AsyncTaskSnapshot): PageTaskState {
  if (isTimeout(record)) return 'timed-out'
  if (!holdsSlot(record.status) || typeof snapshot?.value !== 'object') return record.status
  return snapshot.value.active
}

function isTimeout({ errorCode, error, timeoutMs }: AsyncTaskInfo & { readonly errorCode?: string }): boolean {
  if (errorCode === 'QUEUE_TIMEOUT') return true
  return timeoutMs !== undefined && error?.startsWith(timeoutMessage(timeoutMs)) === true
}

function happeningOf(transition: TaskTransition): Happening | undefined {
  const { at, record } = transition
  switch (transition.kind) {
    case 'status': {
      const state = stateOf(record)
      const { from, to } = transition
      if (from === null) return { at, event: isWaiting(to) ? 'queued' : 'started', state }
      if (!startsOrEndsRun(from, to)) return { at, event: state, state, detail: record.error ?? record.cancelReason }
      if (!holdsSlot(to)) {
        return { at, event: 'waits for its next attempt', state, detail: record.attempts?.at(-1)?.error }
      }
      const isAgain = (record.attempt ?? 1) > 1
      return { at, event: 'started', state, ...(isAgain && { mark: 'attempt', detail: `attempt ${record.attempt}` }) }
    }
    case 'delivery': {
      const { from, to, deliveryId } = transition
      if (to === 'none') return { at, event: 'no longer owed' }
      const event = from === 'leased' && to === 'owed' ? 'owed again' : to === 'leased' ? 'leased' : to
      return { at, event, detail: deliveryId, mark: to }
    }
    case 'owner':
      return { at, event: 'has another owner', detail: `${transition.from} → ${transition.to}` }
    case 'history':
      return undefined
  }
}

/** Derives from a record what happened before the page was started. */
function earlierHappenings(record: AsyncTaskInfo): Happening[] {
  const { launchedAt, startedAt, completedAt, status, notifiedAt, delivery, questions = [] } = record
  const isQueued = startedAt !== undefined || isWaiting(status)
  const end = completedAt === undefined ? undefined : { at: completedAt, state: stateOf(record) }
  return [
    isQueued
      ? { at: launchedAt, event: 'queued', state: 'queued' }
      : { at: launchedAt, event: 'started', state: 'running' },
    ...(startedAt === undefined ? [] : [{ at: startedAt, event: 'started', state: 'running' as const }]),
    ...questions.map(({ askedAt, message }): Happening => ({
      at: askedAt,
      event: 'asked',
      detail: message,
      mark: 'question',
      state: 'asking',
    })),
    ...(end === undefined ? [] : [{ ...end, event: end.state, detail: record.error ?? record.cancelReason }]),
    ...(end !== undefined && (delivery === 'owed' || delivery === 'leased')
      ? [{ at: end.at, event: delivery, mark: delivery }]
      : []),
    ...(notifiedAt === undefined ? [] : [{ at: notifiedAt, event: 'delivered', mark: 'delivered' as const }]),
  ]
}
