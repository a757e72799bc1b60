/** The usage (tokens, cost and so on) of runs, and the budgets that it exceeds (promise F10). */
import type { SpentTotals, TaskBudget } from './records.js'

export type Usage = { readonly [Kind in keyof SpentTotals]?: SpentTotals[Kind] | undefined }

const KINDS = ['tokens', 'cost', 'steps', 'seconds'] as const

/** Adds two numbers. The sum is at most `Number.MAX_VALUE`, because JSON cannot represent Infinity. */
const plus = (a: number | undefined, b: number): number => Math.min((a ?? 0) + b, Number.MAX_VALUE)

export function addSpent(spent: SpentTotals | undefined, amount: Usage): SpentTotals {
  const sum: Record<string, number> = { ...spent }
  for (const kind of KINDS) {
    const more = amount[kind]
    if (more !== undefined) sum[kind] = plus(sum[kind], more)
  }
  return Object.freeze(sum)
}

/** Describes the exceeded budget and the usage. Returns undefined if no budget is exceeded. */
export function overspent(budget: TaskBudget | undefined, spent: SpentTotals | undefined): string | undefined {
  if (budget === undefined || spent === undefined) return undefined
  const kind = KINDS.find((each) => (spent[each] ?? 0) > (budget[each] ?? Infinity))
  return kind && budgetMessage(kind, budget[kind] ?? 0, spent)
}

export function budgetMessage(kind: keyof SpentTotals, limit: number, spent: SpentTotals | undefined): string {
  const unit = kind === 'cost' ? `a cost of ${limit}` : `${limit} ${kind}`
  const total = describeSpent(spent)
  return `Budget exceeded: its limit is ${unit}.${total === '' ? '' : ` Spent: ${total}.`}`
}

/** Describes the usage in words; `''` if nothing was used. */
export function describeSpent(spent: SpentTotals | undefined): string {
  if (spent === undefined) return ''
  return KINDS.flatMap((kind) => {
    const amount = spent[kind]
    if (amount === undefined) return []
    const shown = Math.round(amount * 1e6) / 1e6
    return [kind === 'cost' ? `cost ${shown}` : `${shown} ${kind}`]
  }).join(', ')
}
