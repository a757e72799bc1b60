/** A runner, and what is done when its run did not end by itself. */
import type { TaskBudget } from '../../machines/records.js'
import { aBudget } from '../protocol/budget.js'
import { checkOptions, type OptionType } from '../protocol/option-checks.js'
import { aRetryPolicy, type RetryPolicy } from '../protocol/retry-policy.js'
import type { Runner } from './runner.js'

/** A runner with its policy. */
export interface RunnerDefinition {
  /** Runs the task. */
  readonly run: Runner
  /** When the task is run again. Default: never, it fails. */
  readonly retry?: RetryPolicy | undefined
  /** What the runs of a task may use; the smaller limit counts where a launch has one too. Default: no limit. */
  readonly budget?: TaskBudget | undefined
}

/** Finds what runs the tasks of a subagent; undefined when there is none of this name. */
export type FindRunner = (subagentName: string) => Runner | RunnerDefinition | undefined

export const aDefinition: OptionType = {
  expected: '{ run }, with a function run',
  accepts: (value) => typeof value === 'object' && value !== null && 'run' in value && typeof value.run === 'function',
  checkContent: (value, path) => {
    const { retry, budget } = value as Pick<RunnerDefinition, 'retry' | 'budget'>
    checkOptions({ retry, budget }, { retry: aRetryPolicy, budget: aBudget }, path)
  },
}

/** A definition, or only its function. */
export const aRunnable: OptionType = {
  expected: 'a function, or { run }',
  accepts: (value) => typeof value === 'function' || aDefinition.accepts(value),
  checkContent: (value, path) => {
    if (typeof value !== 'function') aDefinition.checkContent?.(value, path)
  },
}
