/** Reports outputs with a misspelt known field. They would otherwise go unnoticed, because any field is allowed. */
import type { OutputObject } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import { preview } from '../text/preview.js'
import type { Feature } from './feature.js'
import type { TaskRegistry } from './registry.js'

const KNOWN_FIELDS = ['emitted_vars', 'terminate_reason', 'final_message'] as const

/** Reports each misspelt known field in the output of a completed task, once for each field and registry. */
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

/** The known fields that were already reported. */
const misnamedFieldReports = (): Feature & { readonly reported: Set<string> } => ({ reported: new Set() })

function misnamedFields(output: OutputObject): [given: string, known: string][] {
  const unknown = Object.keys(output).filter((name) => !KNOWN_FIELDS.some((known) => known === name))
  return KNOWN_FIELDS.filter((known) => !(known in output)).flatMap((known) => {
    const given = unknown.find((name) => lettersOf(name) === lettersOf(known))
    return given === undefined ? [] : [[given, known] as [string, string]]
  })
}

/** Removes case and separators, so that `finalMessage` and `final-message` equal `final_message`. Names longer than any known one are skipped. */
const lettersOf = (name: string): string => (name.length > 40 ? name : name.toLowerCase().replace(/[^a-z]/g, ''))
