/** The `run` of a stored task: what another process needs to run the task again, or to find its program. */
import { withoutFields } from '../../../machines/task-record.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { jsonBytes } from '../../data/json-size.js'
import { toStartedProgram } from '../../engine/reap.js'
import type { PreviousTask, ResolvedRunner } from '../../engine/runner.js'
import { accepts } from '../../protocol/option-checks.js'
import { aRetryPolicy, type RetryPolicy } from '../../protocol/retry-policy.js'
import type { StoredJson, StoredTask } from '../../store/store.js'

/** The maximum size of the params of a launch in the store, in bytes of JSON. A task with larger params is not run again after a crash. */
const MAX_PARAMS_BYTES = 1024 * 1024

const isObject = (value: unknown): value is StoredJson => typeof value === 'object' && value !== null
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const trueOf = (value: unknown): true | undefined => (value === true ? true : undefined)

/** Reads the fields that each run of a task takes over from the last one. */
const OF_TASK = {
  /** How long a run may take to stop, in ms. */
  graceMs: numberOf,
  pool: (value: unknown) => (value === 'task' || value === 'child' || value === 'command' ? value : undefined),
  /** The params of the launch; null if they are too large. Absent if no other process can run the task. */
  params: (value: unknown) => (value === undefined || isObject(value) ? value : null),
  /** A name for the task that is unique outside of its store as well. Absent if no other system refers to the task. */
  key: textOf,
  foundAs: textOf,
  retry: (value: unknown) => (accepts(aRetryPolicy, value) ? (value as RetryPolicy) : undefined),
  priority: numberOf,
  place: numberOf,
  /** The wait for other tasks, which `readStoredWait` reads. */
  after: (value: unknown) => value,
  previous: (value: unknown) => value as PreviousTask | undefined,
}

const OF_RUN = {
  program: toStartedProgram,
  /** Whether the deadline has passed. The task is then not run again after a crash. */
  isOverdue: trueOf,
  /** The time until which the run must wait. */
  notBefore: numberOf,
  /** The whole length of that wait, in ms. */
  delayMs: numberOf,
  /** Whether the last run was only waiting. */
  isWaiting: trueOf,
  /** How many times in a row runs of this attempt were stopped before this one began. */
  suspensions: numberOf,
  /** The same number with this run, if it was stopped because its process was closed. */
  suspended: numberOf,
  /** Whether the process was closed before the run had begun. */
  hasNotBegun: trueOf,
  /** The progress of a durable task, and how many runs in a row were interrupted without progress. */
  interruption: (value: unknown) =>
    isObject(value)
      ? { progress: numberOf(value['progress']) ?? 0, fruitless: numberOf(value['fruitless']) ?? 0 }
      : undefined,
  /** The standings of the open questions of a durable task, which `storedStandings` reads. */
  questions: (value: unknown) => value,
}

const READERS = { ...OF_TASK, ...OF_RUN }
const RUN_FIELDS: ReadonlySet<string> = new Set(Object.keys(OF_RUN))

export type StoredRun = { readonly [F in keyof typeof READERS]?: ReturnType<(typeof READERS)[F]> | undefined }

export type FoundRow = Omit<StoredTask, 'run'> & { readonly run: StoredRun }

/** Returns the run of a new task. It is empty if no other process could continue the run. */
export function launchedRun(
  { isBound = false, survivesHost = false, foundAs }: ResolvedRunner,
  params: StoredJson = {},
): StoredRun {
  if (isBound) return {}
  return {
    params: jsonBytes(params, MAX_PARAMS_BYTES) > MAX_PARAMS_BYTES ? null : params,
    ...(survivesHost && { key: globalThis.crypto.randomUUID() }),
    ...omitUndefined({ foundAs }),
  }
}

/** Reads the run of a row. Values of another type are left out. */
export function readRun({ run = {} }: StoredTask): StoredRun {
  return omitUndefined(Object.fromEntries(Object.entries(READERS).map(([field, read]) => [field, read(run[field])])))
}

/**
 * Returns the run for a row. Of an ended task that is the program, which the next process may have to end, and the params, so that a person can launch
 * the task again.
 * @param isReduced whether the row is written without what the store may not hold
 */
export function writeRun(run: StoredRun, hasEnded: boolean, isReduced: boolean): Pick<StoredTask, 'run'> {
  if (!hasEnded) return { run: isReduced ? { ...run, params: null } : { ...run } }
  const { program, params } = run
  const hasParams = params !== undefined && JSON.stringify(params) !== '{}'
  if (program === undefined && !hasParams) return {}
  return { run: { ...omitUndefined({ program }), ...(hasParams && { params: isReduced ? null : params }) } }
}

/** Returns what the next run of a task takes over from the last one. */
export const nextRun = (run: StoredRun): StoredRun => withoutFields(run, RUN_FIELDS)
