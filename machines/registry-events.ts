/** The events of the registry, their answers, and the effects that follow its transitions. */
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

/** Why a task was not admitted. */
export type AdmissionRefusal =
  'id-in-use' | 'no-reservation' | 'no-room' | 'no-foreground-room' | 'queue-full' | 'paused' | FamilyRefusal

/** The answer to `task.register`. */
export type Admission = { readonly entry: TaskEntry } | { readonly refusal: AdmissionRefusal }

/** The outcome of a move to the background. `background`: the task was already there. */
export type Detachment = 'detached' | 'no-room' | 'background' | 'ended'

/** Events with an answer, by type. */
export interface RegistryAnswers {
  readonly 'task.register': Admission
  readonly 'task.resume': TaskEntry
  readonly 'task.detach': Detachment
  readonly 'reservation.take': boolean
  readonly 'reservation.cancel': boolean
  readonly 'lease.take': Lease | undefined
  readonly 'delivery.repeat': boolean
}

/** The events of the registry. Each one is a single transition of the ledger. */
export type RegistryEvent =
  | {
      readonly type: 'task.register'
      readonly admission: TaskAdmission
      /** Whether it counts toward the maximum. Its slot is held until `slot.release`. */
      readonly isLaunched: boolean
      readonly reservationId?: string | undefined
      /** The task whose run launches it. */
      readonly parent?: TaskEntry | undefined
    }
  | {
      /** Continues or queues a task of an earlier process. */
      readonly type: 'task.resume'
      readonly record: ActiveTaskInfo
      readonly graceMs: number
      /** How long its run has lasted in earlier processes, in ms. */
      readonly ranMs: number
      /** The time left until its deadline, in ms. */
      readonly remainingMs: number | undefined
      /** How long a queued task must wait before it may start, in ms. */
      readonly delayMs: number
      /** How long it has waited for a slot since then, in ms. */
      readonly waitedMs: number
      readonly pool: SlotPool
      /** How it waits. Needed for a queued task. */
      readonly ticket: QueueTicket
      /** Whether other tasks must end first. It is held in the queue until `task.waits`. */
      readonly isHeld: boolean
      /** Whether its last run only waited. It is held in the queue until `run.works`. */
      readonly isWaiting?: boolean
      readonly durable?: DurableBefore | undefined
      /** Its position among all tasks; undefined to use that of its record. */
      readonly place: number | undefined
      /** Called inside the transition, before the task can start. Calls no host code. */
      readonly prepare: (entry: TaskEntry) => void
    }
  | {
      readonly type: 'task.restore'
      readonly record: AsyncTaskInfo
      /** The message that delivered the result. */
      readonly deliveryId?: string
    }
  | {
      /** Queues a task again after its run has failed. */
      readonly type: 'task.requeue'
      readonly entry: TaskEntry
      readonly ticket: QueueTicket
      /** How long it must wait before it may start, in ms. */
      readonly delayMs: number
      readonly graceMs: number
      /** The error of the run that failed. */
      readonly error: string
      /** Replaces a controller that has aborted. */
      readonly abortController: AbortController | undefined
    }
  | {
      /** The run of a durable task only waits from now on. This time does not count. */
      readonly type: 'run.waits'
      readonly entry: TaskEntry
      /** If set, it gives back its slot during the wait, and later waits for another one with this ticket. */
      readonly ticket: QueueTicket | undefined
    }
  /** The wait of a durable task's run is over. The run continues when it has its slot again (`resumed`). */
  | { readonly type: 'run.works'; readonly entry: TaskEntry }
  | {
      /** Moves a foreground task to the background. */
      readonly type: 'task.detach'
      readonly entry: TaskEntry
      /** Whether it may take a slot above the maximum, because its caller no longer waits for it. */
      readonly mayExceed: boolean
    }
  /** Fails a task that has not started, because its launch could not be stored. No result is owed. */
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
      /** The entries that the message carried. Absent for all entries of the lease. */
      readonly carried?: ReadonlySet<TaskEntry>
      /** Entries accepted after their lease ended, or while another message carries them. */
      readonly late?: readonly TaskEntry[]
      /** The questions of such a message. */
      readonly lateQuestions?: readonly OwedQuestion[]
    }
  | {
      readonly type: 'lease.release'
      readonly deliveryId: string
      /** Whether it is unknown if the message arrived, because its process died. Its entries are marked as possible repeats. */
      readonly isUncertain?: boolean
    }
  | { readonly type: 'lease.restore'; readonly request: Pick<LeaseRequest, 'deliveryId' | 'taskIds' | 'questions'> }
  /** All tasks of an earlier process are restored, so the receivers of their questions are determined now. */
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

/** What earlier processes have left of a durable task. */
export interface DurableBefore {
  /** How long its runs have worked, in ms; undefined if no run has begun. */
  readonly activeMs: number | undefined
  /** How many questions they have asked. */
  readonly asked: number
  /** The stored state of the open questions, by id. */
  readonly standings: Readonly<Record<string, QuestionStanding>>
}

/** Changes of a task that is held in the queue. */
export type WaitEvent =
  /** The task waits for these tasks from now on. With none, only a slot is missing. */
  | { readonly type: 'task.waits'; readonly entry: TaskEntry; readonly ids: readonly string[] }
  /** The tasks that it waits for will not succeed. It fails, unless it has ended by the end of this change. */
  | { readonly type: 'task.unmet'; readonly entry: TaskEntry; readonly failure: TaskFailure }

/** The reports of a task's actor about itself (`AsyncTaskHost`). */
export type TaskReport =
  | { readonly type: 'task.questions'; readonly taskId: string; readonly questions: readonly TaskQuestion[] }
  | { readonly type: 'task.wrapping'; readonly taskId: string; readonly excess: string }
  | { readonly type: 'task.stopping'; readonly taskId: string; readonly excess: string | undefined }

export type RegistryQuestion = Extract<RegistryEvent, { type: keyof RegistryAnswers }>

/** An effect that follows a transition and may run host code. Effects run one after another, in order. */
export type RegistryEffect =
  /** The task was cancelled: abort its run. */
  | { readonly type: 'cancelled'; readonly entry: TaskEntry; readonly reason: string | undefined }
  /** The task has reached a limit: abort its run. `excess` names the exceeded budget. */
  | { readonly type: 'stopping'; readonly entry: TaskEntry; readonly excess: string | undefined }
  /** The task has exceeded a budget: ask its run to conclude. */
  | { readonly type: 'wrapping'; readonly entry: TaskEntry; readonly excess: string }
  /** A waiting task has a slot: start its run. */
  | { readonly type: 'started'; readonly entry: TaskEntry }
  /** The wait of a run is over: continue it. */
  | { readonly type: 'resumed'; readonly entry: TaskEntry }
  /** The tasks that the task waits for will not succeed: fail it. */
  | { readonly type: 'unmet'; readonly entry: TaskEntry; readonly failure: TaskFailure }
