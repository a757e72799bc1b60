import type { Rule } from 'eslint'

export const DOCUMENTED: Readonly<Record<string, ReadonlySet<string>>>
export const INTERNAL: ReadonlySet<string>
export const INTERNAL_WORDS: ReadonlySet<string>
export const documentedXstate: Rule.RuleModule
