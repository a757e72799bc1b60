/** Nodes are restarted one after the other while clients submit: no task is lost, none fails, none runs twice. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { startCluster } from '../support/cluster.js'
import { connectWatched } from '../support/cluster-instance.js'
import { post, taskFor, untilEnded } from '../support/cluster-client.js'

it('N6: SIGTERM to one node after the other under load loses no task and fails none', async () => {
  const { url, nodes, startNode } = await startCluster(2, { server: { tasks: { drainMs: 5000 } } })
  const workers = await Promise.all(['a', 'b', 'c'].map((id) => connectWatched(url, id)))
  const accepted = new Map<string, string>()
  let isOver = false
  /** As clients do: what was not answered, or refused for a while, is repeated with its key. */
  const submitSurely = async (id: string, mark: string): Promise<void> => {
    for (;;) {
      const answer = await post(url, '/tasks', taskFor(id, 'do', { mark, ms: 10 }), { 'idempotency-key': mark }).catch(
        () => undefined,
      )
      if (answer?.status === 201) {
        accepted.set(mark, String(answer.body['taskId']))
        return
      }
      if (answer !== undefined && ![409, 429, 503].includes(answer.status)) throw new Error(JSON.stringify(answer))
      await pause(50)
    }
  }
  const clients = ['a', 'b', 'c'].map(async (id) => {
    for (let n = 0; !isOver; n += 1) {
      await submitSurely(id, `${id}${n}`)
      await pause(5)
    }
  })
  for (const node of [...nodes]) {
    await startNode()
    await pause(300)
    expect(await node.stop()).toBe(0)
    await pause(300)
  }
  isOver = true
  await Promise.all(clients)
  const ends = await Promise.all(Array.from(accepted.values(), (id) => untilEnded(url, id)))
  expect(ends.filter(({ status }) => status !== 'completed')).toEqual([])
  expect(accepted.size).toBeGreaterThan(50)
  for (const [index, id] of ['a', 'b', 'c'].entries()) {
    const marks = [...accepted.keys()].filter((mark) => mark.startsWith(id))
    // One client for each instance, which waits for each answer: its order is the order of the runs.
    expect(workers[index]?.started()).toEqual(marks)
    expect(workers[index]?.mostAtOnce).toBe(1)
  }
})
