/** The input schemas of async tasks. */
import { z } from 'zod'
import type { AsyncTaskInfo } from '../../machines/records.js'
import { STATUSES } from '../../machines/task-status.js'
import { cutText } from '../text/cut-text.js'
import { budgetSchema, spentSchema } from './budget.js'
import { toOneLine } from '../text/control-characters.js'
import { lazily } from './lazily.js'
import { aRetryPolicy, type RetryPolicy } from './retry-policy.js'
import { strictObject } from './strict-object.js'

/** What happens to a launch when no slot is free. */
export type WhenFull = 'refuse' | 'queue'

/** The values of `WhenFull`. */
export const WHEN_FULL = ['refuse', 'queue'] as const satisfies readonly WhenFull[]

/** What happens to a task when a task that it waits for fails or is cancelled. */
export type OnFailedDependency = 'fail' | 'run'

export const ON_FAILED_DEPENDENCY = ['fail', 'run'] as const satisfies readonly OnFailedDependency[]

export const MAX_AFTER = 100

/** The maximum number of starts that a rate may allow. Each start is kept, and stored, while it counts. */
export const MAX_RATE_LIMIT = 500

/** Ids. */
export const name = lazily(() => z.string().min(1).max(512))

/** An id that the host chooses. A line break in it could forge a line of a list. */
const taskId = lazily(() =>
  name().refine((id) => toOneLine(id) === id, 'text without line breaks and other control characters'),
)

/** A key for tasks that run one at a time; it is shown in lists, too. */
export const concurrencyKey = taskId

/** The format of session ids, which become arguments of programs. */
export const SESSION_ID = /^[A-Za-z0-9][\w.:-]{0,199}$/

/** A session that can be resumed. */
export const sessionSchema = lazily(() =>
  strictObject({ id: z.string().regex(SESSION_ID), cwd: z.string().min(1).max(4096).optional() }).readonly(),
)

/** Owners. They may be longer than task ids, because the owner of a run's tasks contains the id of its task. */
export const ownerName = lazily(() => z.string().min(1).max(520))

/** A duration in ms. It may exceed the maximum of the platform's timers. */
export const milliseconds = lazily(() => z.number().min(0))

const abortController = lazily(() =>
  z.custom<AbortController>(
    (value) =>
      typeof value === 'object' &&
      value !== null &&
      typeof (value as AbortController).abort === 'function' &&
      typeof (value as Partial<AbortController>).signal?.addEventListener === 'function',
    'an AbortController',
  ),
)

/** An object, unchanged. A record schema would drop a field with the name `__proto__`. */
export const jsonObject = lazily(() =>
  z.custom<Record<string, unknown>>(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    'an object',
  ),
)

/** The input of `registerTask`. */
export const registerTaskInputSchema = lazily(() =>
  strictObject({
    /** The id of the task, without control characters; must be unique among the retained tasks. */
    id: taskId(),
    /** The name of the subagent that does the work. */
    subagentName: name(),
    /** The goal of the task. */
    goalPrompt: z.string(),
    /** Aborted when the task is cancelled; aborting it cancels the task. */
    abortController: abortController().optional(),
    /** The owner that receives the result. Default: `main`. */
    owner: ownerName().optional(),
    /** The deadline, in ms. Default: none. */
    timeoutMs: milliseconds().optional(),
    /** The grace period of the run after an abort, in ms. */
    graceMs: milliseconds().optional(),
  }),
)

/** The input of `launch`. */
export const launchInputSchema = lazily(() =>
  registerTaskInputSchema().extend({
    /** The id of the task, without control characters. Default: generated from the subagent's name. */
    id: taskId().optional(),
    /** `command` for a program that is started as a command. */
    kind: z.literal('command').optional(),
    /** The program and its arguments, for a command. */
    command: z.array(z.string()).readonly().optional(),
    /** Whether the caller waits for the run. Unless it is a command, the task then takes no slot, and is not refused at the limit. */
    isForeground: z.boolean().optional(),
    /** Further input of the run, as JSON. Default: none. */
    params: jsonObject().optional(),
    /** The task whose run launches and owns this one. Default: none. */
    parentId: name().optional(),
    /** What happens when no slot is free: the launch is refused, or waits. Default: the option of the manager. */
    whenFull: z.enum(WHEN_FULL).optional(),
    /** Among waiting tasks, the one with the highest number starts first. Default: 0. */
    priority: z.int().optional(),
    /** When the task runs again instead of failing. Default: the policy of its definition. */
    retry: z.custom<RetryPolicy>((value) => aRetryPolicy.accepts(value), aRetryPolicy.expected).optional(),
    /** The tasks that must end before it starts; each must be visible to its owner. It waits without a slot. Default: none. */
    after: z.array(name()).max(MAX_AFTER).readonly().optional(),
    /**
     * What happens when one of these fails or is cancelled: the task fails at once (`DEPENDENCY_FAILED`), or runs when all have ended. Default: `fail`.
     */
    onFailedDependency: z.enum(ON_FAILED_DEPENDENCY).optional(),
    /** Tasks with the same key run one at a time, in launch order, unless the option `limits` allows more. Default: none. */
    concurrencyKey: concurrencyKey().optional(),
    /** The limits of all its runs together. Default: the budget of its definition. */
    budget: budgetSchema().optional(),
  }),
)

/**
 * The input of `AsyncTaskManager.registerTask`.
 * @useDeclaredType
 */
export type RegisterTaskInput = z.input<ReturnType<typeof registerTaskInputSchema>>
/**
 * The input of `AsyncTaskManager.launch`. A task without an id gets one.
 * @useDeclaredType
 */
export type LaunchTaskInput = z.input<ReturnType<typeof launchInputSchema>>

/** The input of `launch` in a run. The new task belongs to that run. */
export const childTaskInputSchema = lazily(() => launchInputSchema().omit({ owner: true, parentId: true }))

export const reserveOptionsSchema = lazily(() => strictObject({ ttlMs: milliseconds().optional() }))

export const leaseRequestSchema = lazily(() =>
  strictObject({
    owner: ownerName().optional(),
    exclusive: z.boolean().optional(),
    taskIds: z.array(z.string()).optional(),
    questions: z.array(strictObject({ taskId: z.string(), questionId: z.string() })).optional(),
  }),
)

/** The released owner, and the owner that takes over its tasks and results. */
export const ownerReleaseSchema = lazily(() => strictObject({ owner: ownerName(), to: ownerName().optional() }))

export const cancelOptionsSchema = lazily(() => strictObject({ reason: z.string().optional() }))

/** The owner whose tasks are paused; undefined for all owners. */
export const pausedOwnerSchema = lazily(() => ownerName().optional())

export const pauseOptionsSchema = lazily(() =>
  strictObject({ deliveries: z.enum(['hold', 'send']).optional(), by: z.string().max(100).optional() }),
)

/** Options of a pause. */
export interface PauseOptions {
  /** Whether results are delivered during the pause (`send`, the default) or after it (`hold`). Questions are always delivered. */
  readonly deliveries?: 'hold' | 'send' | undefined
  /** Who requested the pause, for lists; at most 100 characters. Default: none. */
  readonly by?: string | undefined
}

export const cancelAllOptionsSchema = lazily(() => cancelOptionsSchema().extend({ owner: ownerName().optional() }))

/** Options of a cancellation. */
export interface CancelOptions {
  /** The reason. */
  readonly reason?: string | undefined
}

const bytes = lazily(() => z.number().int().min(0))

export const readOutputOptionsSchema = lazily(() =>
  strictObject({ cursor: bytes().optional(), maxBytes: bytes().optional() }),
)

/** The maximum length of a progress message that is kept, in UTF-16 units. */
const MAX_PROGRESS_CHARS = 4096

export const progressSchema = lazily(() =>
  z.object({
    progress: z.number(),
    total: z.number().optional(),
    message: z
      .string()
      .transform((message) => cutText(message, MAX_PROGRESS_CHARS))
      .optional(),
  }),
)

/** Later changes get greater numbers, which must remain exact integers. */
const MAX_RESTORED_SEQ = 2 ** 52

const attemptSchema = lazily(() =>
  z.object({
    number: z.int().min(1),
    startedAt: z.number(),
    endedAt: z.number().optional(),
    error: z.string(),
  }),
)

/** The fields of records, of one status or of all. */
type FieldOf<R> = R extends unknown ? keyof R : never

/** The fields that a journal keeps, without those that belong to the process. */
type JournalField = Exclude<
  FieldOf<AsyncTaskInfo>,
  'abortController' | 'cause' | 'isForeground' | 'questions' | 'waitsFor'
>

/** A task record of a journal. */
export const restorableRecordSchema = lazily(() =>
  z
    .object({
      /** The id of the task. */
      id: name(),
      /** The name of the subagent. */
      subagentName: name(),
      /** The goal of the task. */
      goalPrompt: z.string(),
      /** The owner to whom the result is delivered. */
      owner: ownerName().default('main'),
      /** Its status. A queued or running task is restored as failed, because its process has ended. */
      status: z.enum(STATUSES),
      /** When it was launched, in ms since the epoch. */
      launchedAt: z.number(),
      /** The number of its last change. */
      seq: z.number().int().min(0).max(MAX_RESTORED_SEQ).optional(),
      /** The state of its delivery. A leased result is restored as owed. */
      delivery: z.enum(['none', 'owed', 'leased', 'delivered']).optional(),
      /** When it ended, in ms since the epoch. */
      completedAt: z.number().optional(),
      /** When its result was delivered, in ms since the epoch. */
      notifiedAt: z.number().optional(),
      /** Whether the result may have been delivered before. */
      isRepeat: z.boolean().optional(),
      /** When its run started, in ms since the epoch. */
      startedAt: z.number().optional(),
      /** Its deadline, in ms. */
      timeoutMs: milliseconds().optional(),
      /** The task whose run launched it. */
      parentId: name().optional(),
      /** Its depth in its family: 1 for a child. */
      depth: z.number().int().min(1).optional(),
      /** The tasks that its run had launched and that had not ended. */
      runningChildren: z.array(name()).readonly().optional(),
      /** The tasks that had to end before it could start. */
      after: z.array(name()).max(MAX_AFTER).readonly().optional(),
      /** The key that it was launched with. */
      concurrencyKey: name().optional(),
      /** Its earlier runs. */
      attempts: z.array(attemptSchema()).max(10).readonly().optional(),
      /** The limits of its runs. */
      budget: budgetSchema().optional(),
      /** The sums that its runs have used. */
      spent: spentSchema().optional(),
      /** The number of its current or last run, from 1. */
      attempt: z.number().int().min(1).optional(),
      /** Its result. */
      output: jsonObject().optional(),
      /** Why it failed. */
      error: z.string().optional(),
      /** The name of the error. */
      errorName: z.string().optional(),
      /** The code of the error. */
      errorCode: z.string().optional(),
      /** Why it was cancelled. */
      cancelReason: z.string().optional(),
      /** The output that its run returned after the deadline. */
      lateOutput: jsonObject().optional(),
      /** The task that it continues. */
      continues: name().optional(),
      /** The session of its run. */
      session: sessionSchema().optional(),
      /** The number of messages to its run that were accepted. */
      messagesSent: z.number().int().min(1).optional(),
      /** Its last progress. */
      progress: progressSchema().optional(),
      /** The end of its output. */
      outputTail: z.string().optional(),
      /** Set for a note. */
      isNote: z.literal(true).optional(),
      /** `command` for a program that was started as a command. */
      kind: z.literal('command').optional(),
      /** The program and its arguments. */
      command: z.array(z.string()).readonly().optional(),
      /** The id of its process. */
      pid: z.number().int().optional(),
      /** Its exit code. */
      exitCode: z.number().int().optional(),
      /** The signal that ended it. */
      signal: z.string().optional(),
      /** The number of processes that the program left in its process group and that were ended. */
      endedProcesses: z.number().int().min(1).optional(),
    } satisfies Record<JournalField, z.ZodType>)
    .strip(),
)

/**
 * A record for `AsyncTaskManager.restore`: from `getAllTasks()`, or the same after JSON.
 * @useDeclaredType
 */
export type RestorableRecord = z.input<ReturnType<typeof restorableRecordSchema>>
