/** The subagents that people may launch, such as on the page. A manager without a host offers none. */
import type { ActiveTaskInfo } from '../../machines/records.js'
import type { Feature } from '../async-tasks/feature.js'
import type { FlatSubagent } from './subagents.js'

/** What a host offers. */
export interface SubagentOffer {
  /** The owner of a task whose launch names none. */
  readonly owner: string
  /** The subagents by name. */
  readonly list: () => ReadonlyMap<string, FlatSubagent>
  /** Calls `launch`, unless the owner has as many tasks as it may have. */
  readonly launching: (owner: string, launch: () => ActiveTaskInfo) => ActiveTaskInfo
}

/** The offer of a host, which it sets when it is created. */
export const subagentOffer = (): Feature & { offer: SubagentOffer | undefined } => ({ offer: undefined })
