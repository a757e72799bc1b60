/** Reports outputs in which a known field is misspelt. Nobody would notice otherwise, because an output may have any fields. */
import type { OutputObject } from '../../machines/records.js'
import { endedAs } from '../../machines/task-status.js'
import { preview } from '../data/preview.js'
import type { Feature } from './feature.js'
import type { TaskRegistry } from './registry.js'

const KNOWN_FIELDS = ['emitted_vars', 'terminate_reason', 'final_message'] as const

/** Reports each misspelt known field in the output of a completed task. Each known field is reported once in the life of the registry. */
export function misnamedFields({ report }: TaskRegistry): Feature {
  const reported = new Set<string>()
  return {
    ended: ({ record }, { from }) => {
      if (!endedAs(record, 'succeeded') || from === null) return
      for (const [given, known] of misnamed(record.output)) {
        if (reported.has(known)) continue
        reported.add(known)
        const { id, subagentName } = record
        const message = `The output of subagent ${preview(subagentName)} has a field ${preview(given)}: did you mean ${known}?`
        report(new Error(message), { source: 'output', taskId: id })
      }
    },
  }
}

function misnamed(output: OutputObject): [given: string, known: string][] {
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
