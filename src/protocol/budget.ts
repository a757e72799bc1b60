/** Budgets: limits of what all runs of a task together may use. */
import { z } from 'zod'
import type { TaskBudget } from '../../machines/records.js'
import { lazily } from './lazily.js'
import { numberFrom, optionsOf } from './option-checks.js'
import { strictObject } from './strict-object.js'

const amount = lazily(() => z.number().min(0))

/** An amount that a run reports. */
export const spendSchema = lazily(() =>
  strictObject({
    /** Tokens of a model. */
    tokens: amount().optional(),
    /** Costs, in a currency of the host's choice. */
    cost: amount().optional(),
    /** Steps. The run decides what it counts as one. */
    steps: amount().optional(),
  }),
)

/**
 * An amount that a run reports.
 * @useDeclaredType
 */
export type SpentAmount = z.input<ReturnType<typeof spendSchema>>

/** What the runs of a task have used in total. */
export const spentSchema = lazily(() => spendSchema().extend({ seconds: amount().optional() }))

export const budgetSchema = lazily(() =>
  strictObject({
    seconds: amount().optional(),
    tokens: amount().optional(),
    cost: amount().optional(),
    steps: amount().optional(),
    wrapUpMs: amount().optional(),
  }),
)

export const aBudget = optionsOf<TaskBudget>({
  seconds: numberFrom(0),
  tokens: numberFrom(0),
  cost: numberFrom(0),
  steps: numberFrom(0),
  wrapUpMs: numberFrom(0),
})

/** Returns the smaller limit of each kind from two budgets; undefined when neither has a limit. */
export function smallerBudget(
  one: TaskBudget | undefined,
  other: z.output<ReturnType<typeof budgetSchema>> | undefined,
): TaskBudget | undefined {
  if (one === undefined && other === undefined) return undefined
  const limits = [one, other].flatMap((budget) => Object.entries(budget ?? {}) as [string, number | undefined][])
  const budget: Record<string, number> = {}
  for (const [kind, limit] of limits) if (limit !== undefined) budget[kind] = Math.min(budget[kind] ?? Infinity, limit)
  return Object.keys(budget).length === 0 ? undefined : budget
}
