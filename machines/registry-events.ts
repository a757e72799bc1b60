/** The events of the registry, what it answers, and the effects that follow its transitions. */
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

/** What came of a move to the background. `background`: the task was there already. */
export type Detachment = 'detached' | 'no-room' | 'background' | 'ended'

/** An event that has an answer, by its type. */
export interface RegistryAnswers {
  readonly 'task.register': Admission
  readonly 'task.resume': TaskEntry
  readonly 'task.detach': Detachment
  readonly 'reservation.take': boolean
  readonly 'reservation.cancel': boolean
  readonly 'lease.take': Lease | undefined
  readonly 'delivery.repeat': boolean
}

/** The events of the registry; each is one transition of the ledger. */
export type RegistryEvent =
  | {
      readonly type: 'task.register'
      readonly admission: TaskAdmission
      /** Bound by the maximum; its slot is held until `slot.release`. */
      readonly isLaunched: boolean
      readonly reservationId?: string | undefined
      /** The task whose run launches it. */
      readonly parent?: TaskEntry | undefined
    }
  | {
      /** A task of an earlier process goes on, or waits again. */
      readonly type: 'task.resume'
      readonly record: ActiveTaskInfo
      readonly graceMs: number
      /** For how long its run has gone on in earlier processes, in ms. */
      readonly ranMs: number
      /** What is left until its deadline, in ms. */
      readonly remainingMs: number | undefined
      /** How long one that is queued waits before it may start, in ms. */
      readonly delayMs: number
      /** How long it has waited for a slot since then, in ms. */
      readonly waitedMs: number
      readonly pool: SlotPool
      /** How it waits; needed for one that is queued. */
      readonly ticket: QueueTicket
      /** Other tasks have to end first: its place is held back until `task.waits`. */
      readonly isHeld: boolean
      /** Its last run only waited: its place is held back until `run.works`. */
      readonly isWaiting?: boolean
      readonly durable?: DurableBefore | undefined
      /** Its place among all tasks; undefined for the one that its record has. */
      readonly place: number | undefined
      /** Called inside the transition, before the task can start; it calls no host code. */
      readonly prepare: (entry: TaskEntry) => void
    }
  | {
      readonly type: 'task.restore'
      readonly record: AsyncTaskInfo
      /** The message that delivered it. */
      readonly deliveryId?: string
    }
  | {
      /** The run of a task has failed, and is repeated. */
      readonly type: 'task.requeue'
      readonly entry: TaskEntry
      readonly ticket: QueueTicket
      /** How long it waits before it may start, in ms. */
      readonly delayMs: number
      readonly graceMs: number
      /** The error of the run that failed. */
      readonly error: string
      /** Replaces one that has aborted. */
      readonly abortController: AbortController | undefined
    }
  | {
      /** The run of a durable task only waits from now on: that time does not count. */
      readonly type: 'run.waits'
      readonly entry: TaskEntry
      /** It gives back its slot meanwhile, and waits for another one like this. */
      readonly ticket: QueueTicket | undefined
    }
  /** What the run of a durable task has waited for has come: it works on, as soon as it has its slot again (`resumed`). */
  | { readonly type: 'run.works'; readonly entry: TaskEntry }
  | {
      /** A task in the foreground moves to the background. */
      readonly type: 'task.detach'
      readonly entry: TaskEntry
      /** It may take a slot above the maximum: nobody waits for it any longer. */
      readonly mayExceed: boolean
    }
  /** The launch of a task could not be stored: it fails without having started, and owes nothing. */
  | { readonly type: 'task.withdraw'; readonly entry: TaskEntry; readonly error: string; readonly errorCode: string }
  | WaitEvent
  | { readonly type: 'task.delivered'; readonly taskIds: readonly string[] }
  /** A running task has something new in its record. */
  | { readonly type: 'task.note'; readonly entry: TaskEntry; readonly fields: NotedFields }
  /** The run of a task has used a part of its budget. */
  | { readonly type: 'task.spend'; readonly entry: TaskEntry; readonly amount: Spending }
  | {
      /** An open question is answered. */
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
      /** The entries that the message carried; all of the lease when absent. */
      readonly carried?: ReadonlySet<TaskEntry>
      /** Accepted after its lease had ended, or while another message holds them. */
      readonly late?: readonly TaskEntry[]
      /** The questions of such a message. */
      readonly lateQuestions?: readonly OwedQuestion[]
    }
  | {
      readonly type: 'lease.release'
      readonly deliveryId: string
      /** It is not known whether the message arrived, in a process that has died: its entries are marked as possible repeats. */
      readonly isUncertain?: boolean
    }
  | { readonly type: 'lease.restore'; readonly request: Pick<LeaseRequest, 'deliveryId' | 'taskIds' | 'questions'> }
  /** Every task of an earlier process is there: their questions are owed to those that are found now. */
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
  /** How long its runs have worked, in ms; undefined when none has begun. */
  readonly activeMs: number | undefined
  /** How many questions they have asked. */
  readonly asked: number
  /** What was stored of the open ones, by their ids. */
  readonly standings: Readonly<Record<string, QuestionStanding>>
}

/** What becomes of a task whose place is held back. */
export type WaitEvent =
  /** It waits for these tasks from now on; for none, only a slot is missing. */
  | { readonly type: 'task.waits'; readonly entry: TaskEntry; readonly ids: readonly string[] }
  /** What it waits for will not come: it fails, unless it has ended by the end of this change. */
  | { readonly type: 'task.unmet'; readonly entry: TaskEntry; readonly failure: TaskFailure }

/** The reports of a task's actor about itself (`AsyncTaskHost`). */
export type TaskReport =
  | { readonly type: 'task.questions'; readonly taskId: string; readonly questions: readonly TaskQuestion[] }
  | { readonly type: 'task.wrapping'; readonly taskId: string; readonly excess: string }
  | { readonly type: 'task.stopping'; readonly taskId: string; readonly excess: string | undefined }

/** An event that has an answer. */
export type RegistryQuestion = Extract<RegistryEvent, { type: keyof RegistryAnswers }>

/** What follows a transition: code of the host may run then. Effects are performed in their order, one after the other. */
export type RegistryEffect =
  /** The task was cancelled: its run is aborted. */
  | { readonly type: 'cancelled'; readonly entry: TaskEntry; readonly reason: string | undefined }
  /** The task has reached a limit: its run is aborted. `excess` is the budget that was exceeded, in words. */
  | { readonly type: 'stopping'; readonly entry: TaskEntry; readonly excess: string | undefined }
  /** The task has exceeded a budget: its run is asked to conclude. */
  | { readonly type: 'wrapping'; readonly entry: TaskEntry; readonly excess: string }
  /** A task that has waited has a slot: its run starts. */
  | { readonly type: 'started'; readonly entry: TaskEntry }
  /** A run that has only waited works on. */
  | { readonly type: 'resumed'; readonly entry: TaskEntry }
  /** What the task waits for will not come: it fails. */
  | { readonly type: 'unmet'; readonly entry: TaskEntry; readonly failure: TaskFailure }
