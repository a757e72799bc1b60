/** Checks runners, and what is said of their runs. */
import { aBudget } from '../protocol/budget.js'
import { checkOptions, type OptionType } from '../protocol/option-checks.js'
import { aRetryPolicy } from '../protocol/retry-policy.js'
import type { RunnerDefinition } from './runner.js'

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
