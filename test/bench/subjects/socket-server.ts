/** The servers of `sockets.ts`: `node socket-server.js <ServerSpec as JSON>` starts one, sends its URL, and answers each message once it has swept. */
import { importEntry } from '../package.js'
import { SeedInstanceManager } from '../seed-004/instance-manager.js'
import { SeedTaskManager } from '../seed-004/task-manager.js'
import { startSeedTaskServer } from '../seed-004/task-websocket-server.js'
import type { ServerSpec } from './sockets.js'

interface Started {
  readonly url: string
  /** Drops the tasks that have ended, where that is up to the caller. */
  readonly sweep?: () => void
}

const { kind, instances, checkout } = JSON.parse(process.argv[2] ?? '') as ServerSpec
const ids = Array.from({ length: instances }, (_, at) => `instance-${at}`)

async function startPackageServer(): Promise<Started> {
  const { localInstance, startTaskServer } = await importEntry(checkout, './server')
  const server = await startTaskServer({
    port: 0,
    tasks: { wsPort: 0 },
    limits: { framesPerMinute: 1e9 },
    env: {},
    writeLog: () => undefined,
    instances: ids.map((id) => localInstance({ id, tools: [{ name: 'nothing', execute: () => undefined }] })),
  })
  return { url: server.wsUrl }
}

async function startSeedServer(): Promise<Started> {
  const seedInstances = new SeedInstanceManager()
  for (const id of ids) seedInstances.connect(id, { nothing: () => undefined })
  return await startSeedTaskServer(new SeedTaskManager(seedInstances))
}

const { url, sweep } = await (kind === 'package' ? startPackageServer() : startSeedServer())
process.once('disconnect', () => process.exit())
process.on('message', () => {
  sweep?.()
  process.send?.('swept')
})
process.send?.(url)
