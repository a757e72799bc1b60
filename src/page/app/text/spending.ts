/** Describes what a task has used of its budget. */
import type { PageTaskDetail } from '../../wire.js'
import { count } from './format.js'

type SpentTotals = NonNullable<PageTaskDetail['spent']>

/** Formats the used amounts: `1,200 of 5,000 tokens, 3 steps`. */
export function spendingText(spent: SpentTotals, budget: SpentTotals = {}): string {
  const units = ['tokens', 'cost', 'steps', 'seconds'] as const
  return units
    .filter((unit) => spent[unit] !== undefined || budget[unit] !== undefined)
    .map((unit) => {
      const limit = budget[unit]
      return `${count(spent[unit] ?? 0)}${limit === undefined ? '' : ` of ${count(limit)}`} ${unit}`
    })
    .join(', ')
}
