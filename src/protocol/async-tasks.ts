/** The shapes that cross into the async tasks, checked where they come in. */
import { z } from 'zod'
import { lazily } from './lazily.js'

/** Ids and owners are names: not empty, and no longer than a line. */
const name = lazily(() => z.string().min(1).max(512))

/** A duration in ms; longer than the platform's timers is fine. */
const milliseconds = lazily(() => z.number().min(0))

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

/** What `registerTask` takes (seed 000). */
export const registerTaskInputSchema = lazily(() =>
  z.object({
    /** Names the task; no other that is known bears it. */
    id: name(),
    /** Who does it. */
    subagentName: name(),
    /** What it is to achieve. */
    goalPrompt: z.string(),
    /** Aborted when the task is cancelled; aborting it cancels the task. */
    abortController: abortController().optional(),
    /** Who is told of the end; `main` when absent. */
    owner: name().optional(),
    /** Deadline in ms; none when absent. */
    timeoutMs: milliseconds().optional(),
    /** How long the run may wind down after an abort, in ms. */
    graceMs: milliseconds().optional(),
  }),
)

/** As for `registerTask`; without an id one is made from the subagent's name. */
export const launchInputSchema = lazily(() =>
  registerTaskInputSchema().extend({
    /** Names the task; one is made if it is absent. */
    id: name().optional(),
    /** The caller waits for the run in place: it takes no slot, and is not refused at the limit. */
    isForeground: z.boolean().optional(),
  }),
)

/**
 * What `AsyncTaskManager.registerTask` takes (seed 000).
 * @useDeclaredType
 */
export type RegisterTaskInput = z.input<ReturnType<typeof registerTaskInputSchema>>
/**
 * What `AsyncTaskManager.launch` takes: a task without an id gets one.
 * @useDeclaredType
 */
export type LaunchTaskInput = z.input<ReturnType<typeof launchInputSchema>>

export const reserveOptionsSchema = lazily(() => z.object({ ttlMs: milliseconds().optional() }))

export const leaseRequestSchema = lazily(() =>
  z.object({ owner: name().optional(), exclusive: z.boolean().optional() }),
)

/** Who goes away, and who takes over. */
export const ownerReleaseSchema = lazily(() => z.object({ owner: name(), to: name().optional() }))

const bytes = lazily(() => z.number().int().min(0))

export const readOutputOptionsSchema = lazily(() =>
  z.object({ cursor: bytes().optional(), maxBytes: bytes().optional() }),
)

export const progressSchema = lazily(() =>
  z.object({
    progress: z.number(),
    total: z.number().optional(),
    message: z.string().optional(),
  }),
)

/** A record as a journal keeps it. */
export const restorableRecordSchema = lazily(() =>
  z
    .object({
      /** Names the task. */
      id: name(),
      /** Who did it. */
      subagentName: name(),
      /** What it was to achieve. */
      goalPrompt: z.string(),
      /** Who is told of the end. */
      owner: name().default('main'),
      /** Where it stood; one that ran has failed, since its process is gone. */
      status: z.enum(['running', 'completed', 'failed', 'cancelled']),
      /** When it was launched, in ms since the epoch. */
      launchedAt: z.number(),
      /** The number of its last change. */
      seq: z.number().int().min(0).optional(),
      /** Where the message about its end stood; one that was on its way is owed again. */
      delivery: z.enum(['none', 'owed', 'leased', 'delivered']).optional(),
      /** When it ended, in ms since the epoch. */
      completedAt: z.number().optional(),
      /** When a message that told of it was accepted, in ms since the epoch. */
      notifiedAt: z.number().optional(),
      /** Its deadline, in ms. */
      timeoutMs: milliseconds().optional(),
      /** What it gave back. */
      output: z.record(z.string(), z.unknown()).optional(),
      /** Why it failed. */
      error: z.string().optional(),
      /** How far it had come. */
      progress: progressSchema().optional(),
    })
    .strip(),
)

/**
 * A record that `AsyncTaskManager.restore` takes: what `getAllTasks()` gave, or the same after a trip through JSON.
 * @useDeclaredType
 */
export type RestorableRecord = z.input<ReturnType<typeof restorableRecordSchema>>
