/** P15: what a cluster costs, and how soon it hears of a cancellation and of a death. */
import { findRedis } from '../support/redis-server.js'
import type { Figure, Line } from './figure.js'
import { counted, latencyMs, own } from './quantities.js'
import type { SubjectSpec } from './subject.js'

const cluster = (create: string, params: unknown): SubjectSpec => ({ module: 'cluster', create, params })

/** How long a node is silent before it counts as dead, in ms, where that is measured. */
const LOCK_MS = 3000

const format = (n: number): string => n.toLocaleString('en-GB')

function costs(instances: number): Line[] {
  const on = (nodes: number): SubjectSpec => cluster('tasksOfCluster', { nodes, instances })
  const [none, one, three] = [on(0), on(1), on(3)]
  const among = `, ${format(instances)} instances`
  const asOnOne = { subject: three, reference: { name: 'on one node', subject: one }, goal: { atMost: 1.2 } }
  const asWithout = { subject: one, reference: { name: 'without a cluster', subject: none } }
  const cpu = counted('cpuUs', 'us')
  return [
    { ...asOnOne, name: `processor time of a task on three nodes and Redis${among}`, quantity: cpu },
    { ...asWithout, name: `processor time of a task on one node and Redis${among}`, quantity: cpu },
    { subject: three, name: `of it Redis, three nodes${among}`, quantity: counted('redisUs', 'us') },
    {
      ...asOnOne,
      name: `commands to Redis for a task on three nodes${among}`,
      quantity: counted('commands', 'commands'),
    },
    {
      ...asOnOne,
      name: `connections to Redis of each of three nodes${among}`,
      quantity: counted('connections', 'connections'),
    },
    { ...asWithout, name: `memory of one node${among}`, quantity: counted('rssMiB', 'MiB') },
  ]
}

function idle(instances: number, windowMs: number): Line[] {
  const subject = cluster('idleCluster', { nodes: 1, instances, windowMs })
  const among = `, ${format(instances)} instances`
  return [
    { subject, name: `commands of an idle node${among}`, quantity: counted('commands', 'a second') },
    { subject, name: `processor time of an idle node${among}`, quantity: counted('nodesMs', 'ms a second') },
    { subject, name: `processor time of Redis for an idle node${among}`, quantity: counted('redisMs', 'ms a second') },
  ]
}

/** All subjects of a figure are there at once, each with its processes; those of an idle one disturb the others little. */
const effort: Figure['effort'] = (whole) => ({ ...whole, starts: 1, warmMs: 100, roundMs: Math.min(whole.roundMs, 60) })

const figureOf = (lines: (isQuick: boolean) => readonly Line[]): Figure => ({
  id: 'P15',
  effort,
  // Without a Redis there is nothing to measure.
  lines: ({ isQuick }) => (findRedis() === undefined ? [] : lines(isQuick)),
})

const latencies = (isQuick: boolean): readonly Line[] => {
  const lockMs = isQuick ? 600 : LOCK_MS
  return [
    {
      name: 'p99 of a cancellation from another node',
      subject: cluster('cancels', {}),
      quantity: latencyMs(0.99),
      reference: { name: 'one write to the same Redis', subject: cluster('writes', {}) },
      goal: { atMost: 10 },
    },
    {
      name: `from the death of a node to the next command of its instance, lockMs ${format(lockMs)}`,
      subject: cluster('deaths', { lockMs }),
      quantity: own('ms'),
      // Nodes look after a sixth of it.
      goal: { atMost: lockMs + (2 * lockMs) / 6 + 5000 },
    },
  ]
}

/** One figure for each number of instances, so that few processes are there at once. */
export const clusterCosts: readonly Figure[] = [
  figureOf(() => costs(10)),
  ...[100, 1000].map((instances) => figureOf((isQuick) => (isQuick ? [] : costs(instances)))),
  figureOf((isQuick) =>
    (isQuick ? [10] : [10, 100, 1000]).flatMap((instances) => idle(instances, isQuick ? 200 : 2600)),
  ),
  figureOf(latencies),
]
