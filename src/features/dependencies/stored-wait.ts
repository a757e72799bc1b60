/** The tasks in the `after` of a task and their results, as the row of the waiting task stores them. */
import { z } from 'zod'
import { hasSucceeded, TERMINAL_STATUSES } from '../../../machines/task-status.js'
import type { DependencyResult } from '../../engine/runner.js'
import { lazily } from '../../protocol/lazily.js'
import { ON_FAILED_DEPENDENCY, type OnFailedDependency } from '../../protocol/async-tasks.js'
import type { StoredJson } from '../../store/store.js'

export interface DependencyResults {
  readonly onFailed: OnFailedDependency
  /** The results by task id, in the order of `after`. The value is undefined while that task has not ended. */
  readonly results: Map<string, DependencyResult | undefined>
}

export const pendingIds = ({ results }: DependencyResults): string[] =>
  [...results].flatMap(([id, result]) => (result === undefined ? [id] : []))

/** Returns the id and result of the first task that did not complete, if the waiting task must fail because of it. */
export function failedOf({ onFailed, results }: DependencyResults): [string, DependencyResult] | undefined {
  if (onFailed === 'run') return undefined
  for (const [id, result] of results) if (result !== undefined && !hasSucceeded(result.status)) return [id, result]
  return undefined
}

export const toStoredWait = ({ onFailed, results }: DependencyResults): StoredJson => ({
  onFailed,
  tasks: Array.from(results, ([id, result]) => (result === undefined ? { id } : { id, result })),
})

const storedWaitSchema = lazily(() =>
  z.object({
    onFailed: z.enum(ON_FAILED_DEPENDENCY),
    tasks: z.array(
      z.object({
        id: z.string(),
        result: z.custom<DependencyResult>(isResult).optional(),
      }),
    ),
  }),
)

const isResult = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  TERMINAL_STATUSES.some((status) => status === (value as StoredJson)['status'])

/** Returns undefined for a task without `after`. */
export function readStoredWait(after: unknown): DependencyResults | undefined {
  const read = storedWaitSchema().safeParse(after)
  if (!read.success) return undefined
  const { onFailed, tasks } = read.data
  return { onFailed, results: new Map(tasks.map(({ id, result }) => [id, result])) }
}
