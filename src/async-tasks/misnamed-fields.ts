/** Reports outputs in which a known field is misspelt. Nobody would notice otherwise, because an output may have any fields. */
import type { OutputObject } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import { preview } from '../text/preview.js'
import type { Feature } from './feature.js'
import type { TaskRegistry } from './registry.js'

const KNOWN_FIELDS = ['emitted_vars', 'terminate_reason', 'final_message'] as const

/** Reports each misspelt known field in the output of a completed task. Each known field is reported once in the life of the registry. */
export function reportMisnamedFields(registry: TaskRegistry, { record }: TaskEntry): void {
  if (record.status !== 'completed' || registry.isDisposed) return
  for (const [given, known] of misnamedFields(record.output)) {
    const { reported } = registry.use(misnamedFieldReports)
    if (reported.has(known)) continue
    reported.add(known)
    const { id, subagentName } = record
    const message = `The output of subagent ${preview(subagentName)} has a field ${preview(given)}: did you mean ${known}?`
    registry.report(new Error(message), { source: 'output', taskId: id })
  }
}

/** The known fields for which a misspelling was reported. */
const misnamedFieldReports = (): Feature & { readonly reported: Set<string> } => ({ reported: new Set() })

function misnamedFields(output: OutputObject): [given: string, known: string][] {
  const unknown = Object.keys(output).filter((name) => !KNOWN_FIELDS.some((known) => known === name))
  return KNOWN_FIELDS.filter((known) => !(known in output)).flatMap((known) => {
    const given = unknown.find((name) => lettersOf(name) === lettersOf(known))
    return given === undefined ? [] : [[given, known] as [string, string]]
  })
}

/**
 * Removes case and separators, so that `finalMessage` and `final-message` become equal to `final_message`. Names of more than 40 characters stay
 * unchanged, because each known field is shorter.
 */
const lettersOf = (name: string): string => (name.length > 40 ? name : name.toLowerCase().replace(/[^a-z]/g, ''))
