import type { Rule } from 'eslint'

export const STATUSES: readonly string[]
export const statusLiterals: Rule.RuleModule
