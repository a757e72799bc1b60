/** The clients of `broadcast.ts`: `node audience.js <url> <clients> <subscribed>` connects them, and reads what comes. */
import { once } from 'node:events'
import { WebSocket } from 'ws'

const [url = '', clients = '', subscribed = ''] = process.argv.slice(2)

/** How many sockets are opened at once. */
const AT_ONCE = 100

async function connect(isSubscribed: boolean): Promise<void> {
  const socket = new WebSocket(url, { perMessageDeflate: false })
  await once(socket, 'open')
  if (!isSubscribed) {
    socket.on('message', () => undefined)
    return
  }
  const acknowledged = new Promise<void>((resolve) => {
    const onMessage = (data: Buffer): void => {
      if (!data.toString().includes('"subscribe_ack"')) return
      socket.off('message', onMessage)
      resolve()
    }
    socket.on('message', onMessage)
  })
  socket.send(JSON.stringify({ type: 'subscribe_instance', instanceId: 'instance' }))
  await acknowledged
  socket.on('message', () => undefined)
}

process.once('disconnect', () => process.exit())
const all = Number(clients)
for (let at = 0; at < all; at += AT_ONCE) {
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, all - at) }, (_, n) => connect(at + n < Number(subscribed))))
}
process.send?.('ready')
