/**
 * The judge of a race with crashes: what was seen from outside in all lives, held against A1 to A9, K1 to K7 and K13. Its notes are on the disk of
 * the race: what a dead life notes is not in them.
 */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { hasEnded } from '../../machines/task-status.js'
import type { StoreContents, StoredTask } from '../../src/store/store.js'

type Status = AsyncTaskInfo['status']

/** What is known of a task. */
interface TaskNotes {
  /** Its launch or registration was stored. */
  isAdmitted: boolean
  /** Its launch or registration threw, or could not be stored. */
  isRefused: boolean
  /** Its attempts that have started, in all lives. */
  readonly attempts: number[]
  /** The end that was stored first. */
  stored: Status | undefined
  /** The end that handlers were notified of. */
  heard: Status | undefined
  /** A call said that it is cancelled, or its run was aborted. */
  isCancelled: boolean
  /** How often a message or the result of a tool had its end. */
  handedOut: number
  /** How often the transcript has its end, as what. */
  told: Status[]
  /** It was delivered, and no message is uncertain of it: the store says so, or its host ended cleanly. */
  isConfirmed: boolean
}

/** What the judge knows, and the transcript of the host. */
export interface Notes {
  readonly tasks: Record<string, TaskNotes>
  /** The messages that left, with the tasks of their latest attempt. */
  readonly handedOut: Record<string, readonly string[]>
  /** The delivery ids of the messages that the agent has read. */
  readonly transcript: string[]
  /** Contradictions: the first one is reported. */
  readonly problems: string[]
}

export const emptyNotes = (): Notes => ({ tasks: {}, handedOut: {}, transcript: [], problems: [] })

/** What a race allows. */
export interface Terms {
  readonly notifyCancelled: boolean
  /** The host knows which messages its transcript has: each end is told exactly once. */
  readonly isExact: boolean
  /** How many runs a task may have in all. */
  readonly attempts: number
  /** Every write succeeds: a call that returned is on the disk. */
  readonly isDiskSound: boolean
}

export class Judge {
  readonly notes: Notes
  readonly #terms: Terms
  /** How many attempts each message had: 1 for the first, 2 for any later one. */
  readonly #attempts = new Map<string, 1 | 2>()
  /** The attempts that polite stops of this life have asked to stop, until they start again. */
  readonly #suspended = new Map<string, number>()
  /** The tasks whose runs have returned an output after they were asked to stop. */
  readonly #returned = new Set<string>()

  constructor(notes: Notes, terms: Terms) {
    this.notes = notes
    this.#terms = terms
  }

  get taskIds(): string[] {
    return Object.keys(this.notes.tasks)
  }

  // What happened

  /** A task is about to be launched. */
  announce(id: string): void {
    this.notes.tasks[id] = {
      isAdmitted: false,
      isRefused: false,
      isCancelled: false,
      isConfirmed: false,
      stored: undefined,
      heard: undefined,
      attempts: [],
      handedOut: 0,
      told: [],
    }
  }

  admit(id: string): void {
    this.#task(id).isAdmitted = true
  }

  refuse(id: string): void {
    this.#task(id).isRefused = true
  }

  /** A run starts. An attempt that was not stored first would start in two lives. */
  start(id: string, attempt: number): void {
    const { attempts } = this.#task(id)
    this.#check(!attempts.includes(attempt), `K7: attempt ${attempt} of ${id} started twice`)
    this.#check(attempt <= this.#terms.attempts, `K7: ${id} started attempt ${attempt}`)
    attempts.push(attempt)
    const stopped = this.#suspended.get(id) ?? attempt
    this.#check(attempt === stopped, `K13: attempt ${stopped} of ${id} was stopped, and attempt ${attempt} follows`)
    this.#suspended.delete(id)
  }

  /** A call returned that the task is cancelled, or its run was aborted: with a sound disk that is stored (K6). */
  cancel(id: string): void {
    if (this.#terms.isDiskSound) this.#task(id).isCancelled = true
  }

  /** A run is asked to stop by a polite end, which uses up no attempt: the next process may start the same one. */
  suspend(id: string): void {
    const attempt = this.#task(id).attempts.pop()
    if (attempt !== undefined) this.#suspended.set(id, attempt)
  }

  /** A run that a polite end has asked to stop returns its output within its grace. */
  returned(id: string): void {
    this.#returned.add(id)
  }

  /** A host has ended politely, with these records before and after it was asked to (K13). Its store has what a crash would have left. */
  stop(before: readonly AsyncTaskInfo[], after: readonly AsyncTaskInfo[], { tasks }: StoreContents): void {
    const active = before.filter(({ status }) => !hasEnded(status))
    for (const { id, status } of active) {
      const now = after.find((record) => record.id === id)?.status
      this.#check(now === status, `K13: ${id} was ${status}, and the stop made it ${now ?? 'gone'}`)
      if (!this.#terms.isDiskSound) continue
      const stored = tasks.find((task) => task.id === id)?.status
      const mayComplete = stored === 'completed' && this.#suspended.has(id)
      const isKept = mayComplete || (stored === status && !this.#returned.has(id))
      this.#check(isKept, `K13: ${id} was ${status}, and is left as ${stored ?? 'nothing'} by the stop`)
      if (stored === 'completed') this.#suspended.delete(id)
    }
    this.#returned.clear()
    // The note of the stop may be missing.
    if (!this.#terms.isDiskSound) this.#suspended.clear()
  }

  /** A handler was notified of an end. */
  hear(record: SettledTaskInfo): void {
    if (isRefused(record)) return
    const { id, status } = record
    const task = this.#task(id)
    this.#check(task.heard === undefined, `A1: the end of ${id} was notified twice`)
    task.heard = status
    this.#expectEnd(id, status, 'K2', 'was notified')
  }

  /** A message leaves. */
  handOut(deliveryId: string, taskIds: readonly string[]): void {
    const before = this.notes.handedOut[deliveryId]
    const isSame = before === undefined || taskIds.every((id) => before.includes(id))
    this.#check(isSame, `K3: ${deliveryId} was used for two messages`)
    this.#attempts.set(deliveryId, before === undefined ? 1 : 2)
    this.notes.handedOut[deliveryId] = taskIds
    for (const id of taskIds) {
      this.#task(id).handedOut += 1
      this.#check(!this.#task(id).isConfirmed, `K5: ${id} was confirmed, and is delivered again`)
    }
  }

  /** A host has ended cleanly with these records: it needs none of the messages that it accepted again. */
  end(records: readonly AsyncTaskInfo[]): void {
    if (!this.#terms.isDiskSound) return
    for (const { id, delivery } of records) if (delivery === 'delivered') this.#task(id).isConfirmed = true
  }

  /** The agent reads a message. */
  tell(deliveryId: string, records: readonly AsyncTaskInfo[]): void {
    this.notes.transcript.push(deliveryId)
    for (const { id, status, isRepeat = false } of records) {
      const task = this.#task(id)
      this.#expectEnd(id, status, 'K4', 'was told')
      const isAllowed = task.told.length === 0 || (!this.#terms.isExact && isRepeat)
      this.#check(isAllowed, `K4: ${id} was told again${this.#terms.isExact ? '' : ', and not marked as a repeat'}`)
      const isFirst = this.#attempts.get(deliveryId) === 1
      this.#check(!isRepeat || task.handedOut > 1 || !this.#terms.isExact, `K4: ${id} is marked as a repeat`)
      this.#check(isRepeat || isFirst, `H6: ${id} was in a message that failed, and is not marked as a repeat`)
      task.told.push(status)
    }
  }

  // After each turn

  /** An end that was stored stays as it is, and so does its confirmation. A repeat that was accepted is confirmed. */
  look({ tasks, deliveries }: StoreContents): void {
    const uncertain = new Set(deliveries.flatMap(({ taskIds }) => taskIds))
    for (const { id, status, delivery, record } of tasks) {
      if (status === 'running') continue
      this.#check(record['errorCode'] !== NOT_STORED, `K1: the launch of ${id} was refused, and its end is stored`)
      const task = this.#task(id)
      task.stored ??= status
      this.#expectEnd(id, status, 'K7', 'is stored')
      const isInterrupted = status === 'failed' && record['errorCode'] === INTERRUPTED
      this.#check(!isInterrupted || !this.#suspended.has(id), `K13: ${id} was stopped, and is not run again`)
      if (delivery !== 'delivered') continue
      if (!uncertain.has(id)) task.isConfirmed = true
      else this.#check(record['isRepeat'] !== true, `K5: the repeat of ${id} was accepted, and is not confirmed`)
    }
  }

  // At the end

  /** Every end was told as often as it must be, and what is stored is what the manager has. The row of a task that was pruned goes with the next write. */
  conclude(records: readonly AsyncTaskInfo[], { tasks }: StoreContents): void {
    const accepted = records.filter((record) => !isRefused(record))
    const left = new Map(accepted.map((record) => [record.id, record]))
    for (const id of this.taskIds) this.#concludeTask(id, left)
    const stored = tasks.filter((task) => left.has(task.id) || !isPrunable(task))
    const kept = (all: readonly Pick<AsyncTaskInfo, 'id' | 'status' | 'delivery'>[]): string =>
      Array.from(all, ({ id, status, delivery }) => `${id} ${status} ${delivery}`)
        .sort()
        .join(', ')
    this.#check(kept(stored) === kept(accepted), `K10: stored is ${kept(stored)}, and not ${kept(accepted)}`)
  }

  #concludeTask(id: string, left: ReadonlyMap<string, AsyncTaskInfo>): void {
    const record = left.get(id)
    const { isAdmitted, isRefused, attempts, isCancelled, stored, heard, told } = this.#task(id)
    // A record that was pruned had ended.
    const status = record?.status ?? stored ?? heard
    if (isRefused) this.#check(status === undefined, `K1: ${id} was refused, and is ${status ?? ''}`)
    if (isRefused) this.#check(attempts.length === 0, `K1: ${id} was refused, and has run`)
    if (isAdmitted || attempts.length > 0) this.#check(status !== undefined, `K1: ${id} is lost`)
    if (isCancelled) this.#check(status === 'cancelled', `K6: ${id} was cancelled, and is ${status ?? 'gone'}`)
    if (status === undefined || status === 'running') return
    const owes = status !== 'cancelled' || this.#terms.notifyCancelled
    // Its parent still runs, and nobody has asked it.
    if (record?.owner.startsWith('run:') === true && left.get(record.owner.slice(4))?.status === 'running') return
    this.#check(told.length > 0 || !owes, `A5: the end of ${id} was never told`)
    this.#check(told.length === 0 || owes, `A5: the end of ${id} was told, and it is cancelled`)
    const { delivery } = record ?? { delivery: undefined }
    this.#check(delivery !== 'owed' && delivery !== 'leased', `A6: ${id} is still ${delivery ?? ''}`)
  }

  #expectEnd(id: string, status: Status, rule: string, what: string): void {
    const { stored = status, heard = status, isCancelled } = this.#task(id)
    const [told = status] = this.#task(id).told
    this.#check(stored === status, `${rule}: ${id} ${what} as ${status}, and was stored as ${stored}`)
    this.#check(heard === status, `K2: ${id} ${what} as ${status}, and was notified as ${heard}`)
    this.#check(told === status, `K4: ${id} ${what} as ${status}, and was told as ${told}`)
    this.#check(!isCancelled || status === 'cancelled', `K6: ${id} ${what} as ${status}, and was cancelled`)
  }

  #check(isRight: boolean, problem: string): void {
    if (!isRight) this.notes.problems.push(problem)
  }

  #task(id: string): TaskNotes {
    const task = this.notes.tasks[id]
    if (task === undefined) throw new Error(`the judge has no task ${id}`)
    return task
  }
}

const NOT_STORED = 'NOT_STORED'
const INTERRUPTED = 'INTERRUPTED'

/** Whether the launch of a task could not be stored. */
export const isRefused = (record: AsyncTaskInfo): boolean =>
  record.status === 'failed' && record.errorCode === NOT_STORED

/** Whether a task has ended, and owes nothing. */
const isPrunable = ({ status, delivery }: StoredTask): boolean =>
  hasEnded(status) && (delivery === 'none' || delivery === 'delivered')
