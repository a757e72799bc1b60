/** The events of the registry, the answers to them, and the effects that follow its transitions. */
import type { LeaseRequest } from './ledger.js'
import type { FamilyRefusal } from './families.js'
import type { TaskPause } from './pauses.js'
import type {
  ActiveTaskInfo,
  AsyncTaskInfo,
  QueueTicket,
  SlotPool,
  TaskAdmission,
  TaskAnswer,
  TaskFailure,
  TaskQuestion,
} from './records.js'
import type { Spending } from './spending.js'
import type { Lease, OwedQuestion, QuestionStanding, TaskEntry } from './task-entry.js'
import type { NotedFields } from './task-record.js'

/** Why the registration of a task was refused. */
export type AdmissionRefusal =
  'id-in-use' | 'no-reservation' | 'no-room' | 'no-foreground-room' | 'queue-full' | 'paused' | FamilyRefusal

/** The answer to `task.register`. */
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
    }
  | {
      /** Queues a task again after its run has failed. */
      readonly type: 'task.requeue'
      readonly entry: TaskEntry
      readonly ticket: QueueTicket
      /** How long the task must wait before it may start, in ms. */
      readonly delayMs: number
      readonly graceMs: number
      /** The error of the run that failed. */
      readonly error: string
      /** The new controller of the task, because the old one has aborted. Undefined to keep the old one. */
      readonly abortController: AbortController | undefined
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
  /** Adds fields to the record of a running task. */
  | { readonly type: 'task.note'; readonly entry: TaskEntry; readonly fields: NotedFields }
  /** Adds to the usage of a task. */
  | { readonly type: 'task.spend'; readonly entry: TaskEntry; readonly amount: Spending }
  | {
      readonly type: 'question.answer'
      readonly entry: TaskEntry
      readonly questionId: string
      readonly answer: TaskAnswer
    }
  | TaskReport
  | { readonly type: 'reservation.take'; readonly reservationId: string; readonly ttlMs: number }
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
      /** Whether it is unknown if the message arrived, because the process that sent it died. Its entries are marked as possible repeats. */
      readonly isUncertain?: boolean
    }
  | { readonly type: 'lease.restore'; readonly request: Pick<LeaseRequest, 'deliveryId' | 'taskIds' | 'questions'> }
  /** All tasks of an earlier process are restored, so it is now known who receives their questions. */
  | { readonly type: 'questions.address' }
  | { readonly type: 'delivery.repeat'; readonly deliveryId: string }
  | { readonly type: 'claims.drop'; readonly deliveryId: string }
  | { readonly type: 'owner.release'; readonly owner: string; readonly heir: string | undefined }
  | { readonly type: 'text.cut'; readonly taskIds: readonly string[] }
  | { readonly type: 'text.read'; readonly taskId: string }
  | { readonly type: 'history.prune' }
  | { readonly type: 'deadlines.due' }
  | { readonly type: 'retries.due' }
  | { readonly type: 'registry.dispose' }

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
