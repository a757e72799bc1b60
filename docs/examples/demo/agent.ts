/**
 * The agent of the demo: a loop that is busy during a turn and idle in between. Where a real host calls a model, it waits, and keeps
 * the text that the model would have read.
 */
import { setTimeout as think } from 'node:timers/promises'
import type { TurnDelivery } from 'agent-tasks'
import { BehaviorSubject } from 'rxjs'

export interface AgentHooks {
  /** Runs the agent's turn for these results; rejects to refuse the message. */
  readonly onResults: (text: string, taskIds: readonly string[], deliveryId: string) => Promise<void>
  readonly onAccepted: (text: string) => void
}

export interface Agent {
  readonly busy$: BehaviorSubject<boolean>
  /** A turn that the auto-trigger starts. */
  readonly triggerAgentTurn: (text: string, delivery: TurnDelivery) => Promise<void>
  /** Keeps the agent busy: the user chats, or a confirmation is awaited. */
  readonly whileBusy: (turn: () => Promise<void>) => Promise<void>
}

export function createAgent(hooks: AgentHooks): Agent {
  const busy$ = new BehaviorSubject(false)
  // A turn may start while another thing keeps the agent busy; it is idle when the last has ended.
  let reasons = 0
  const whileBusy = async (turn: () => Promise<void>): Promise<void> => {
    reasons += 1
    busy$.next(true)
    try {
      await turn()
    } finally {
      reasons -= 1
      busy$.next(reasons > 0)
    }
  }
  return {
    busy$,
    triggerAgentTurn: (text, { taskIds, deliveryId }) =>
      whileBusy(async () => {
        await think(150)
        await hooks.onResults(text, taskIds, deliveryId)
        hooks.onAccepted(text)
      }),
    whileBusy,
  }
}
