/** Checks runners, and what is said of their runs. */
import { aBudget } from '../protocol/budget.js'
import {
  aFunction,
  aString,
  checkEntry,
  required,
  type OptionType,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { aRetryPolicy } from '../protocol/retry-policy.js'
import type { RunnerDefinition } from './runner.js'

/** A subagent is a definition with a name and a description. */
interface NamedDefinition extends RunnerDefinition {
  readonly name?: string
  readonly description?: string
}

const definitionTypes: OptionTypes<NamedDefinition> = {
  run: required(aFunction),
  name: aString,
  description: aString,
  retry: aRetryPolicy,
  budget: aBudget,
}

export const aDefinition: OptionType = {
  expected: '{ run }, with a function run',
  accepts: (value) => typeof value === 'object' && value !== null && 'run' in value && typeof value.run === 'function',
  checkContent: (value, path) => {
    checkEntry(value as object, definitionTypes, path)
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
