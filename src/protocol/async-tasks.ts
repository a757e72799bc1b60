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

/** What happens to a launch when no slot is free: an error (`refuse`), or the task waits for a slot (`queue`). */
export type WhenFull = 'refuse' | 'queue'

export const WHEN_FULL = ['refuse', 'queue'] as const satisfies readonly WhenFull[]

/** What happens to a task when a task that it waits for fails or is cancelled: it fails at once (`fail`), or runs when all have ended (`run`). */
export type OnFailedDependency = 'fail' | 'run'

export const ON_FAILED_DEPENDENCY = ['fail', 'run'] as const satisfies readonly OnFailedDependency[]

export const MAX_AFTER = 100

/** The maximum number of starts that a rate may allow. Each start is kept in memory and in the store while it counts towards the rate. */
export const MAX_RATE_LIMIT = 500

/** A name or an id. */
export const name = lazily(() => z.string().min(1).max(512))

/** An id that the host chooses. Line breaks are refused, because a line break in an id could forge an entry in a list of tasks. */
const taskId = lazily(() =>
  name().refine((id) => toOneLine(id) === id, 'text without line breaks or other control characters'),
)

/** The key of tasks that run one at a time. Lists show it, so line breaks are refused here as well. */
export const concurrencyKey = taskId

/** The format of session ids. They become arguments of programs, so they may not begin with a dash. */
export const SESSION_ID = /^[A-Za-z0-9][\w.:-]{0,199}$/

/** The session of a program or agent that a later task can resume. */
export const sessionSchema = lazily(() =>
  strictObject({ id: z.string().regex(SESSION_ID), cwd: z.string().min(1).max(4096).optional() }).readonly(),
)

/** The name of an owner. The limit is higher than that of ids, because the owner of a run's own tasks contains the id of the run's task. */
export const ownerName = lazily(() => z.string().min(1).max(520))

/** A duration in ms. It may exceed the maximum of the platform's timers, which is about 25 days. */
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

/** An object that is passed on unchanged. `z.record` is not used, because it would drop a field with the name `__proto__`. */
export const jsonObject = lazily(() =>
  z.custom<Record<string, unknown>>(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    'an object',
  ),
)

/** The input of `registerTask`. */
export const registerTaskInputSchema = lazily(() =>
  strictObject({
    /** The id of the task, without control characters. It must be unique among the tasks in memory and in the history. */
    id: taskId(),
    /** The name of the subagent that does the work. */
    subagentName: name(),
    /** The goal of the task. */
    goalPrompt: z.string(),
    /** This controller is aborted when the task is cancelled. Aborting it cancels the task. */
    abortController: abortController().optional(),
    /** The owner that receives the result. Default: `main`. */
    owner: ownerName().optional(),
    /** The deadline, in ms. Default: none. */
    timeoutMs: milliseconds().optional(),
    /** How long the run may take to stop after it was aborted, in ms. */
    graceMs: milliseconds().optional(),
  }),
)

/** The input of `launch`. */
export const launchInputSchema = lazily(() =>
  registerTaskInputSchema().extend({
    /** The id of the task, without control characters. Default: generated from the subagent's name. */
    id: taskId().optional(),
    /** `command` when the task runs a program of the tool `run_command`. */
    kind: z.literal('command').optional(),
    /** For a command: the program and its arguments. */
    command: z.array(z.string()).readonly().optional(),
    /** Whether the caller waits for the run. Then the task takes no slot and is not refused at the limit, unless it is a command. */
    isForeground: z.boolean().optional(),
    /** More input for the run, as JSON. Default: none. */
    params: jsonObject().optional(),
    /** The task whose run launches and owns this one. Default: none. */
    parentId: name().optional(),
    /** What happens when no slot is free: the launch is refused, or waits. Default: the option of the manager. */
    whenFull: z.enum(WHEN_FULL).optional(),
    /** Among waiting tasks, the one with the highest number starts first. Default: 0. */
    priority: z.int().optional(),
    /** When the task runs again instead of failing. Default: the policy in the definition of its subagent. */
    retry: z.custom<RetryPolicy>((value) => aRetryPolicy.accepts(value), aRetryPolicy.expected).optional(),
    /** The ids of the tasks that must end before this one starts. Its owner must be able to see them. It waits without a slot. Default: none. */
    after: z.array(name()).max(MAX_AFTER).readonly().optional(),
    /**
     * What happens when a task in `after` fails or is cancelled. `fail`, the default: this task fails at once (`DEPENDENCY_FAILED`). `run`:
     * this task runs when all of them have ended.
     */
    onFailedDependency: z.enum(ON_FAILED_DEPENDENCY).optional(),
    /** Tasks with the same key run one at a time, in launch order. The option `limits` of the manager can allow more. Default: none. */
    concurrencyKey: concurrencyKey().optional(),
    /** What all runs of the task together may use. Default: the budget in the definition of its subagent. */
    budget: budgetSchema().optional(),
  }),
)

/**
 * The input of `AsyncTaskManager.registerTask`.
 * @useDeclaredType
 */
export type RegisterTaskInput = z.input<ReturnType<typeof registerTaskInputSchema>>
/**
 * The input of `AsyncTaskManager.launch`. A task without an id gets a generated one.
 * @useDeclaredType
 */
export type LaunchTaskInput = z.input<ReturnType<typeof launchInputSchema>>

/** The input of `launch` when a run calls it. The new task belongs to that run. */
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

/** The input of a release: the owner to release, and the owner that takes over its tasks and results. */
export const ownerReleaseSchema = lazily(() => strictObject({ owner: ownerName(), to: ownerName().optional() }))

export const cancelOptionsSchema = lazily(() => strictObject({ reason: z.string().optional() }))

/** The owner whose tasks are paused; undefined for all owners. */
export const pausedOwnerSchema = lazily(() => ownerName().optional())

export const pauseOptionsSchema = lazily(() =>
  strictObject({ deliveries: z.enum(['hold', 'send']).optional(), by: z.string().max(100).optional() }),
)

/** Options of a pause. */
export interface PauseOptions {
  /** Whether results are delivered during the pause (`send`, the default) or after it (`hold`). Questions are delivered in both cases. */
  readonly deliveries?: 'hold' | 'send' | undefined
  /** Who requested the pause, to be shown in lists; at most 100 characters. Default: none. */
  readonly by?: string | undefined
}

export const cancelAllOptionsSchema = lazily(() => cancelOptionsSchema().extend({ owner: ownerName().optional() }))

/** Options of a cancellation. */
export interface CancelOptions {
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

/** The registry gives later changes greater numbers. They must stay exact integers, so a restored number may not be too large. */
const MAX_RESTORED_SEQ = 2 ** 52

const attemptSchema = lazily(() =>
  z.object({
    number: z.int().min(1),
    startedAt: z.number(),
    endedAt: z.number().optional(),
    error: z.string(),
  }),
)

/** The names of all fields that a record can have in any status. */
type FieldOf<R> = R extends unknown ? keyof R : never

/** The fields that a journal keeps. The others describe the process that held the record, so they are not restored. */
type JournalField = Exclude<
  FieldOf<AsyncTaskInfo>,
  'abortController' | 'cause' | 'isForeground' | 'questions' | 'waitsFor'
>

/** A task record that was read from a journal. */
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
      /** The status of the task. A queued or running task is restored as failed, because its process has ended. */
      status: z.enum(STATUSES),
      /** When the task was launched, in ms since the epoch. */
      launchedAt: z.number(),
      /** The number of the last change of the record. */
      seq: z.number().int().min(0).max(MAX_RESTORED_SEQ).optional(),
      /** The state of the delivery of the result. A leased result is restored as owed. */
      delivery: z.enum(['none', 'owed', 'leased', 'delivered']).optional(),
      /** When the task ended, in ms since the epoch. */
      completedAt: z.number().optional(),
      /** When the result was delivered, in ms since the epoch. */
      notifiedAt: z.number().optional(),
      /** Whether the result may have been delivered before. */
      isRepeat: z.boolean().optional(),
      /** When the current or last run started, in ms since the epoch. */
      startedAt: z.number().optional(),
      /** The deadline of the task, in ms. */
      timeoutMs: milliseconds().optional(),
      /** The id of the task whose run launched this one. */
      parentId: name().optional(),
      /** How far the task is below the first task of its family: 1 for a child. */
      depth: z.number().int().min(1).optional(),
      /** The ids of the tasks that the run had launched and that had not ended. */
      runningChildren: z.array(name()).readonly().optional(),
      /** The ids of the tasks that had to end before this one could start. */
      after: z.array(name()).max(MAX_AFTER).readonly().optional(),
      /** The concurrency key of the launch. */
      concurrencyKey: name().optional(),
      /** The earlier runs of the task. */
      attempts: z.array(attemptSchema()).max(10).readonly().optional(),
      /** What all runs of the task together may use. */
      budget: budgetSchema().optional(),
      /** What the runs have used. */
      spent: spentSchema().optional(),
      /** The number of the current or last run, from 1. */
      attempt: z.number().int().min(1).optional(),
      /** The result of the task. */
      output: jsonObject().optional(),
      /** Why the task failed. */
      error: z.string().optional(),
      /** The name of the error. */
      errorName: z.string().optional(),
      /** The code of the error. */
      errorCode: z.string().optional(),
      /** Why the task was cancelled. */
      cancelReason: z.string().optional(),
      /** The output that the run returned after the deadline. */
      lateOutput: jsonObject().optional(),
      /** The id of the task that this one continues. */
      continues: name().optional(),
      /** The session of the run. */
      session: sessionSchema().optional(),
      /** How many messages to the run were accepted. */
      messagesSent: z.number().int().min(1).optional(),
      /** The last progress that the run reported. */
      progress: progressSchema().optional(),
      /** The end of the output that the run has printed. */
      outputTail: z.string().optional(),
      /** Set when the record is a note: a message of a schedule or monitor. */
      isNote: z.literal(true).optional(),
      /** `command` when the task ran a program of the tool `run_command`. */
      kind: z.literal('command').optional(),
      /** The program and its arguments. */
      command: z.array(z.string()).readonly().optional(),
      /** The id of the program's process. */
      pid: z.number().int().optional(),
      /** The exit code of the program. */
      exitCode: z.number().int().optional(),
      /** The signal that ended the program. */
      signal: z.string().optional(),
      /** The number of processes that the program left in its process group and that were then ended. */
      endedProcesses: z.number().int().min(1).optional(),
    } satisfies Record<JournalField, z.ZodType>)
    .strip(),
)

/**
 * A record for `AsyncTaskManager.restore`: one of `getAllTasks()`, also after it was converted to JSON and back.
 * @useDeclaredType
 */
export type RestorableRecord = z.input<ReturnType<typeof restorableRecordSchema>>
