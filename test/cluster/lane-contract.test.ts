/** The contract of lanes, on two nodes of a cluster. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, it } from 'vitest'
import { bullmqCluster } from '../../src/bullmq/index.js'
import { connectInstance } from '../../src/client/index.js'
import { startTaskServer } from '../../src/server/index.js'
import { laneContract, type LaneSubject } from '../../src/testing/lane-contract.js'
import { post, untilEnded } from '../support/cluster-client.js'
import { LOCK_MS } from '../support/cluster.js'
import { connectTo, startFront } from '../support/front.js'
import { startRedis } from '../support/redis-server.js'

async function onNodes(): Promise<LaneSubject> {
  const redis = await startRedis()
  const ports: number[] = []
  let turn = 0
  const front = await startFront(() => connectTo(ports[(turn += 1) % ports.length] ?? 0))
  const url = `http://127.0.0.1:${front.port}`
  const startNode = () =>
    startTaskServer({
      port: 0,
      env: {},
      tasks: { wsPort: 0 },
      logLevel: 'error',
      cluster: bullmqCluster({ connection: redis.url, publicUrl: url, lockMs: LOCK_MS }),
    })
  const nodes = await Promise.all([startNode(), startNode()])
  ports.push(...nodes.map(({ httpUrl }) => Number(new URL(httpUrl).port)))
  const ends: (() => Promise<unknown>)[] = []
  return {
    keepsWaiting: true,
    connect: async (id, onCall) => {
      const execute = (args: unknown, { signal }: { readonly signal: AbortSignal }): Promise<object> =>
        new Promise((resolve) => onCall({ name: (args as { name: string }).name, signal, end: () => resolve({}) }))
      const reconnect = { initialMs: 20, maxMs: 100 }
      const instance = await connectInstance(url, { id, reconnect, tools: [{ name: 'call', execute }] })
      ends.push(() => instance.close())
      return { cut: () => front.cut() }
    },
    submit: async (instanceId, name) => {
      const task = { task_name: name, instanceId, commands: [{ tool_name: 'call', args: { name } }] }
      const answer = await post(url, '/tasks', task, { 'idempotency-key': name }).catch(() => undefined)
      return answer?.status === 201 ? String(answer.body['taskId']) : undefined
    },
    cancel: async (id) => (await post(url, `/tasks/${id}/cancel`)).status === 200,
    ended: async (id) => {
      const { status, error } = await untilEnded(url, id)
      return { status, code: error?.code }
    },
    restart: async () => {
      await redis.kill()
      await pause(500)
      await redis.start()
    },
    dispose: async () => {
      for (const end of ends) await end()
      await Promise.all(nodes.map((node) => node.close()))
      await redis.close()
    },
  }
}

describe('on two nodes', () => {
  for (const { name, run } of laneContract(onNodes)) it(name, run)
})
