/** The events of the registry, the answers to them, and the effects that follow its transitions. */
import type { LeaseRequest } from './ledger-options.js'
import type { ActiveTaskInfo, AsyncTaskInfo, OutputObject, TaskAnswer, TaskFailure, TaskQuestion } from './records.js'
import type { QueueTicket, SlotPool, TaskAdmission } from './task-admission.js'
import type { Usage } from './usage.js'
import type { Lease, OwedQuestion, QuestionStanding, TaskEntry } from './task-entry.js'
import type { NotedFields } from './record-fields.js'

/** A pause. While it lasts, tasks of the paused owners do not start. Running tasks and the tasks that they launch continue. */
export interface TaskPause {
  /** The owner whose tasks are paused. Absent for all owners. */
  readonly owner?: string
  /** Whether results are delivered during the pause (`send`), or held back until it ends (`hold`). */
  readonly deliveries: 'hold' | 'send'
  /** When the pause began, in ms since the epoch. */
  readonly since: number
  /** Who began the pause, as passed to `pause`. */
  readonly by?: string
}

/** Why a run may not launch a task. */
export type FamilyRefusal = 'parent-ended' | 'too-deep' | 'too-many'

export type AdmissionRefusal =
  | 'id-in-use'
  | 'no-reservation'
  | 'no-room'
  | 'no-foreground-room'
  | 'no-owner-room'
  | 'owner-queue-full'
  | 'queue-full'
  | 'paused'
  | FamilyRefusal

export type Admission = { readonly entry: TaskEntry } | { readonly refusal: AdmissionRefusal }

/** The outcome of a move to the background. `background`: the task was in the background before. */
export type Detachment = 'detached' | 'no-room' | 'background' | 'ended'

/** The types of the answers, by the type of the event. Other events have no answer. */
export interface RegistryAnswers {
  readonly 'task.register': Admission
  readonly 'task.resume': TaskEntry
  readonly 'task.detach': Detachment
  readonly 'reservation.take': boolean
  readonly 'reservation.cancel': boolean
  readonly 'lease.take': Lease | undefined
  readonly 'delivery.repeat': boolean
}

/** The events of the registry. The registry handles each of them in one transition. */
export type RegistryEvent =
  /** A feature limits the run of a task. The run must conclude, as if it had exceeded a budget. */
  | { readonly type: 'limit.exceeded'; readonly entry: TaskEntry; readonly message: string; readonly errorCode: string }
  | {
      /** Gives the run of a task another deadline. Ignored if the task does not run, or if its run is being stopped. */
      readonly type: 'deadline.change'
      readonly entry: TaskEntry
      /** The time until the new deadline, in ms; undefined for no deadline. */
      readonly inMs: number | undefined
    }
  | {
      readonly type: 'task.register'
      readonly admission: TaskAdmission
      /** Whether the manager starts the run. The task then needs a slot and holds it until `slot.release`, even if the task ends before its run. */
      readonly isLaunched: boolean
      readonly reservationId?: string | undefined
      /** The task whose run launches the new task. */
      readonly parent?: TaskEntry | undefined
    }
  | {
      /** Continues or queues a task of an earlier process. */
      readonly type: 'task.resume'
      readonly record: ActiveTaskInfo
      readonly graceMs: number
      /** How long the run has lasted in earlier processes, in ms. */
      readonly ranMs: number
      /** The time left until its deadline, in ms. */
      readonly remainingMs: number | undefined
      /** How long a queued task must wait before it may start, for example the rest of a back-off; in ms. */
      readonly delayMs: number
      /** How long a queued task has already waited for a slot, in ms. */
      readonly waitedMs: number
      readonly pool: SlotPool
      /** How the task waits for a slot. Needed for a queued task. */
      readonly ticket: QueueTicket
      /** Whether other tasks must end first. If so, the task is held in the queue until `task.waits`. */
      readonly isHeld: boolean
      /** Whether the last run only waited. If so, the task is held in the queue until `run.works`. */
      readonly isWaiting?: boolean
      readonly durable?: DurableBefore | undefined
      /** The position of the task in the order of all tasks. Default: the sequence number of its record. */
      readonly place: number | undefined
      /** Called inside the transition, before the task can start. Must not call host code. */
      readonly prepare: (entry: TaskEntry) => void
    }
  | {
      readonly type: 'task.restore'
      readonly record: AsyncTaskInfo
      /** The id of the message that delivered the result. */
      readonly deliveryId?: string
      /** See `TaskEntry.repeatOf`. */
      readonly repeatOf?: string
    }
  | {
      /** Queues a task again after its run has failed. */
      readonly type: 'task.requeue'
      readonly entry: TaskEntry
      readonly ticket: QueueTicket
      /** How long the task must wait before it may start, in ms. */
      readonly delayMs: number
      readonly graceMs: number
      readonly error: string
      /** The new controller of the task, because the old one has aborted. Undefined to keep the old one. */
      readonly abortController: AbortController | undefined
      /** Whether the next run repeats the attempt, because the last run was stopped with its process. */
      readonly keepsAttempt?: boolean
    }
  | {
      /** From now on, the run of a durable task only waits. This time does not count. */
      readonly type: 'run.waits'
      readonly entry: TaskEntry
      /** If set, the run gives back its slot while it waits. After that it waits for another slot with this ticket. */
      readonly ticket: QueueTicket | undefined
    }
  /** The wait of a durable task's run is over. The run continues as soon as it has its slot again (`resumed`). */
  | { readonly type: 'run.works'; readonly entry: TaskEntry }
  | {
      /** Moves a foreground task to the background. */
      readonly type: 'task.detach'
      readonly entry: TaskEntry
      /** Whether the task may take a slot above the maximum. Used when its caller no longer waits for it, because the task must go on. */
      readonly mayExceed: boolean
    }
  /** Fails a task that has not started, because its launch could not be stored. Its result is not owed. */
  | { readonly type: 'task.withdraw'; readonly entry: TaskEntry; readonly error: string; readonly errorCode: string }
  | WaitEvent
  | { readonly type: 'task.delivered'; readonly taskIds: readonly string[] }
  | { readonly type: 'task.note'; readonly entry: TaskEntry; readonly fields: NotedFields }
  | { readonly type: 'task.spend'; readonly entry: TaskEntry; readonly amount: Usage }
  | {
      readonly type: 'question.answer'
      readonly entry: TaskEntry
      readonly questionId: string
      readonly answer: TaskAnswer
    }
  | TaskReport
  | {
      readonly type: 'reservation.take'
      readonly reservationId: string
      readonly ttlMs: number
      /** The owner of the task for which the slot is held. Default: the slot counts for no owner. */
      readonly owner?: string | undefined
    }
  | { readonly type: 'reservation.cancel'; readonly reservationId: string }
  | { readonly type: 'slot.release'; readonly entry: TaskEntry }
  | { readonly type: 'limit.set'; readonly max: number; readonly pool?: SlotPool }
  | { readonly type: 'pause.begin'; readonly pause: TaskPause }
  | { readonly type: 'pause.end'; readonly owner: string | undefined }
  | { readonly type: 'lease.take'; readonly request: LeaseRequest }
  | {
      readonly type: 'lease.acknowledge'
      readonly deliveryId: string
      /** The entries that the message contains. Absent if it contains all entries of the lease. */
      readonly carried?: ReadonlySet<TaskEntry>
      /** Entries that were accepted late: their lease has ended, or another message carries them by now. */
      readonly late?: readonly TaskEntry[]
      /** The questions that were accepted late in the same message. */
      readonly lateQuestions?: readonly OwedQuestion[]
    }
  | {
      readonly type: 'lease.release'
      readonly deliveryId: string
      /** Whether the message may have arrived. Then its entries are marked as possible repeats, and repeated in one message with the same id. */
      readonly isUncertain?: boolean
    }
  | { readonly type: 'lease.restore'; readonly request: Pick<LeaseRequest, 'deliveryId' | 'taskIds' | 'questions'> }
  /** All tasks of an earlier process are restored, so it is now known who receives their questions. */
  | { readonly type: 'questions.address' }
  | { readonly type: 'delivery.repeat'; readonly deliveryId: string }
  | { readonly type: 'claims.drop'; readonly deliveryId: string }
  | { readonly type: 'owner.release'; readonly owner: string; readonly heir: string | undefined }
  /** Transfers some of the tasks of an owner. */
  | {
      readonly type: 'tasks.transfer'
      readonly owner: string
      readonly heir: string
      readonly ids: ReadonlySet<string>
    }
  | { readonly type: 'text.cut'; readonly taskIds: readonly string[] }
  | { readonly type: 'text.read'; readonly taskId: string }
  | { readonly type: 'history.prune' }
  | { readonly type: 'deadlines.due' }
  | { readonly type: 'retries.due' }
  /** These runs are asked to stop, and their tasks are left to the next process. `registry.dispose` follows. */
  | { readonly type: 'registry.suspend'; readonly running: readonly TaskEntry[] }
  /** Nothing changes any more, except for `run.returned`, and `task.spend` of suspended runs. */
  | { readonly type: 'registry.dispose' }
  /** A suspended run has returned after the disposal. Its task is completed in the store only, so that the next process delivers the output. */
  | { readonly type: 'run.returned'; readonly entry: TaskEntry; readonly output: OutputObject }
  /** All suspended runs have ended. */
  | { readonly type: 'registry.close' }

/** What earlier processes have recorded about a durable task. */
export interface DurableBefore {
  /** How long the runs have worked, in ms; undefined if no run has begun. */
  readonly activeMs: number | undefined
  /** How many questions the runs have asked. */
  readonly asked: number
  /** The delivery states of the open questions, by their ids. */
  readonly standings: Readonly<Record<string, QuestionStanding>>
}

/** Changes of a task that is held in the queue. */
export type WaitEvent =
  /** The task waits for the tasks with these ids. If there are none, it needs only a slot. */
  | { readonly type: 'task.waits'; readonly entry: TaskEntry; readonly ids: readonly string[] }
  /** A task that this task waits for has not completed. So this task fails, unless it ends in another way within this change. */
  | { readonly type: 'task.unmet'; readonly entry: TaskEntry; readonly failure: TaskFailure }

/** What the actor of a task reports about the task (`AsyncTaskHost`). */
export type TaskReport =
  | { readonly type: 'task.questions'; readonly taskId: string; readonly questions: readonly TaskQuestion[] }
  | { readonly type: 'task.wrapping'; readonly taskId: string; readonly excess: string }
  | { readonly type: 'task.stopping'; readonly taskId: string; readonly excess: string | undefined }

export type RegistryQuestion = Extract<RegistryEvent, { type: keyof RegistryAnswers }>

/** An effect of a transition. It may run host code. Effects run after the transition, one after another. */
export type RegistryEffect =
  /** The task was cancelled. Its run must be aborted. */
  | { readonly type: 'cancelled'; readonly entry: TaskEntry; readonly reason: string | undefined }
  /** The task has reached a limit. Its run must be aborted. `excess` is the exceeded budget in words; undefined if the deadline has passed. */
  | { readonly type: 'stopping'; readonly entry: TaskEntry; readonly excess: string | undefined }
  /** The task has exceeded a budget. Its run must be asked to conclude. */
  | { readonly type: 'wrapping'; readonly entry: TaskEntry; readonly excess: string }
  /** A queued task has received a slot. Its run must start. */
  | { readonly type: 'started'; readonly entry: TaskEntry }
  /** The wait of a run is over. The run must continue. */
  | { readonly type: 'resumed'; readonly entry: TaskEntry }
  /** A task that this task waits for has not completed. This task must fail. */
  | { readonly type: 'unmet'; readonly entry: TaskEntry; readonly failure: TaskFailure }
