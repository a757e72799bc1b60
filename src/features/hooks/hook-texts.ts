/** What the messages of hooks say besides the results. */

/** The maximum number of ids in one line. */
const MAX_IDS = 20

const idsText = (ids: readonly string[]): string => {
  const more = ids.length > MAX_IDS ? ` and ${ids.length - MAX_IDS} more` : ''
  return `${ids.slice(0, MAX_IDS).join(', ')}${more}`
}

/** Without a store, messages have no delivery id of their own. */
export const deliveryIdLine = (deliveryId: string): string => `Delivery ID: ${deliveryId}`

export const earlierLine = (ids: readonly string[]): string =>
  `Launched in an earlier conversation of this client: ${idsText(ids)}.`

const whatHappens = (hasStore: boolean): string =>
  hasStore
    ? 'Their results, or that they were interrupted, are in the next session that resumes this conversation.'
    : 'They end with this client, and their results are lost.'

/** For tasks that still run when the hook may not wait longer. */
export function stillRunningText(ids: readonly string[], continuationsLeft: number, hasStore: boolean): string {
  const running = `${ids.length} background task(s) still run: ${idsText(ids)}.`
  return continuationsLeft > 0
    ? `${running} There is nothing to do for them: end your turn, and their results follow.`
    : `${running} They cannot be waited for any longer. ${whatHappens(hasStore)}`
}

/** For the last message that the client lets through in this turn. */
export const lastCallText = (ids: readonly string[], hasStore: boolean): string =>
  `No further message can follow before you call a tool. Still running: ${idsText(ids)}. ${whatHappens(hasStore)}`
