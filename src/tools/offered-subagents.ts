/** The subagents that a person may launch, for example on the page. A manager without a host offers none. */
import type { ActiveTaskInfo } from '../../machines/records.js'
import type { Feature } from '../async-tasks/feature.js'
import type { ResolvedSubagent } from './subagents.js'

export interface SubagentOffer {
  /** The owner of a launched task if the person names no owner. */
  readonly owner: string
  readonly list: () => ReadonlyMap<string, ResolvedSubagent>
  /** Calls `launch`, unless the owner is at its limit of tasks. */
  readonly launching: (owner: string, launch: () => ActiveTaskInfo) => ActiveTaskInfo
}

/** The feature with the offer. The host sets the offer when it is created. */
export const subagentOffer = (): Feature & { offer: SubagentOffer | undefined } => ({ offer: undefined })
