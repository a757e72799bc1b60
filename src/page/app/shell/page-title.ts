/** The title of the document. It distinguishes several open pages and shows the state of each. */
import { PART_NAMES, type Part } from '../addresses.js'
import type { Connection } from '../stream/connection.js'
import { visible } from '../text/visible.js'

interface Titled {
  readonly part: Part
  readonly task?: string
  /** The number of tasks with open questions. */
  readonly asking: number
  readonly state: Connection['state']
  /** The host name and the port of the server. */
  readonly host: string
}

const LOSSES: Readonly<Partial<Record<Connection['state'], string>>> = { lost: 'Lost · ', refused: 'No access · ' }

export function pageTitle({ part, task, asking, state, host }: Titled): string {
  const sign = LOSSES[state] ?? (asking > 0 ? `(${asking}) ` : '')
  const subject = task === undefined ? '' : `${visible(task)} · `
  return `${sign}${subject}${PART_NAMES[part]} · ${host} · agent-tasks`
}
