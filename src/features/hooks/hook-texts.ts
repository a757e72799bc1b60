/** What the messages of hooks say besides the results. */

import { idList } from '../../data/id-list.js'

/** Without a store, messages have no delivery id of their own. */
export const deliveryIdLine = (deliveryId: string): string => `Delivery ID: ${deliveryId}`

export const earlierLine = (ids: readonly string[]): string =>
  `Launched in an earlier conversation of this client: ${idList(ids)}.`

const whatHappens = (hasStore: boolean): string =>
  hasStore
    ? 'Their results, or that they were interrupted, are in the next session that resumes this conversation.'
    : 'They end with this client, and their results are lost.'

/** For tasks that still run when the hook may not wait longer. */
export function stillRunningText(ids: readonly string[], continuationsLeft: number, hasStore: boolean): string {
  const running = `${ids.length} background task(s) still run: ${idList(ids)}.`
  return continuationsLeft > 0
    ? `${running} There is nothing to do for them: end your turn, and their results follow.`
    : `${running} They cannot be waited for any longer. ${whatHappens(hasStore)}`
}

/** For the last message that the client lets through in this turn. */
export const lastCallText = (ids: readonly string[], hasStore: boolean): string =>
  `No further message can follow before you call a tool. Still running: ${idList(ids)}. ${whatHappens(hasStore)}`
