/** The clients of `broadcast.ts`: `node audience.js <url> <clients> <subscribed>` connects them and reads what they get. */
import { once } from 'node:events'
import { WebSocket } from 'ws'

const [url = '', clients = '', subscribed = ''] = process.argv.slice(2)

/** How many sockets are opened at once. */
const AT_ONCE = 100

async function connect(isSubscribed: boolean): Promise<void> {
  const socket = new WebSocket(url, { perMessageDeflate: false })
  await once(socket, 'open')
  if (isSubscribed) {
    socket.send(JSON.stringify({ type: 'subscribe_instance', instanceId: 'instance' }))
    await new Promise<void>((resolve) => {
      socket.on('message', (data: Buffer) => {
        if (data.includes('"subscribe_ack"')) resolve()
      })
    })
    socket.removeAllListeners('message')
  }
  socket.on('message', () => undefined)
}

process.once('disconnect', () => process.exit())
const all = Number(clients)
for (let at = 0; at < all; at += AT_ONCE) {
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, all - at) }, (_, n) => connect(at + n < Number(subscribed))))
}
process.send?.('ready')
