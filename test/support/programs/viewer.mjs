// Stands in for Stately's viewer: a window that keeps the messages of Stately's own receiver, and all other messages that were posted to the window.
import { createBrowserReceiver } from '@statelyai/inspect'

const received = []
const posted = []
const waiting = new Set()
const look = () => waiting.forEach((one) => one())

globalThis.addEventListener('message', ({ data, origin }) => {
  posted.push({ type: data.type, origin })
  look()
})
createBrowserReceiver().subscribe((message) => void received.push(message))

globalThis.viewer = {
  received: () => received,
  posted: () => posted,
  /** Resolves when a message of this type was posted. */
  until: (type) =>
    new Promise((resolve) => {
      const isThere = () => {
        if (!posted.some((message) => message.type === type)) return
        waiting.delete(isThere)
        resolve()
      }
      waiting.add(isThere)
      isThere()
    }),
}
