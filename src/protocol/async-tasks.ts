/** The input schemas of async tasks. */
import { z } from 'zod'
import type { LaunchTerms } from '../../machines/record-fields.js'
import type { TaskBudget } from '../../machines/records.js'
import { aBudget, budgetSchema, smallerBudget } from './budget.js'
import { toOneLine } from '../data/control-characters.js'
import { lazily } from './lazily.js'
import { accepts, anObject, numberFrom, type OptionTypes } from './option-checks.js'
import type { RetryPolicy } from './retry-policy.js'
import { runFields } from './run-fields.js'
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
    /** How long the run may take to stop after it was aborted, in ms. A runner with a longer `graceMs` gets that time. */
    graceMs: milliseconds().optional(),
  }),
)

/** The terms of a launch, besides `timeoutMs`: what a task that continues or repeats another one takes over (`isTerm` in `machines/record-fields.ts`). */
const termInputs = lazily(() => ({
  /** Tasks with the same key run one at a time, in launch order. The option `limits` of the manager can allow more. Default: none. */
  concurrencyKey: concurrencyKey().optional(),
  /** What all runs of the task together may use. Default: the budget in the definition of its subagent. */
  budget: budgetSchema().optional(),
  /** How long a run may be without output and progress, in ms >= 1. Default: `idleMs` in the definition of its subagent. */
  idleMs: z.number().min(1).optional(),
}))

/** The terms that the definition of a subagent may set for its tasks. */
export interface SubagentTerms {
  /** The maximum usage of a task. If a launch has a budget too, the smaller limits count. Default: no limit. */
  readonly budget?: TaskBudget | undefined
  /**
   * How long a run may be without output and progress, in ms >= 1. Then `wrapUp` aborts, and a run that does not conclude is stopped (`TASK_IDLE`). Time
   * in which it waits for an answer, or for tasks that it has launched, does not count. Default: no limit.
   */
  readonly idleMs?: number | undefined
}

export const subagentTermTypes: OptionTypes<SubagentTerms> = { budget: aBudget, idleMs: numberFrom(1) }

/** Returns the terms that count for a launch. */
export const countingTerms = (
  { timeoutMs, concurrencyKey: key, budget, idleMs }: z.output<ReturnType<typeof launchInputSchema>>,
  subagent: SubagentTerms,
): { readonly [F in keyof LaunchTerms]-?: LaunchTerms[F] } => ({
  timeoutMs,
  concurrencyKey: key,
  budget: Object.freeze(smallerBudget(subagent.budget, budget)),
  idleMs: idleMs ?? subagent.idleMs,
})

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
    ...runFields(),
    /** The task whose run launches and owns this one. Default: none. */
    parentId: name().optional(),
    /** What happens when no slot is free: the launch is refused, or waits. Default: the option of the manager. */
    whenFull: z.enum(WHEN_FULL).optional(),
    /** Among waiting tasks, the one with the highest number starts first. Default: 0. */
    priority: z.int().optional(),
    /** When the task runs again instead of failing. Default: the policy in the definition of its subagent. */
    retry: z.custom<RetryPolicy>((value) => accepts(anObject, value), anObject.expected).optional(),
    /** The ids of the tasks that must end before this one starts. Its owner must be able to see them. It waits without a slot. Default: none. */
    after: z.array(name()).max(MAX_AFTER).readonly().optional(),
    /**
     * What happens when a task in `after` fails or is cancelled. `fail`, the default: this task fails at once (`DEPENDENCY_FAILED`). `run`:
     * this task runs when all of them have ended.
     */
    onFailedDependency: z.enum(ON_FAILED_DEPENDENCY).optional(),
    ...termInputs(),
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

export const reserveOptionsSchema = lazily(() =>
  strictObject({ ttlMs: milliseconds().optional(), owner: ownerName().optional() }),
)

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
