/** What is measured, what it is compared with, and what it has to reach. */
import type { Figure, Line } from './figure.js'
import { PAGE_LIMIT } from '../support/page-files.js'
import { hasPostgres } from '../support/postgres-server.js'
import { findRedis } from '../support/redis-server.js'
import { clusterCosts } from './cluster-figure.js'
import { cpuUs, latencyMs, own, perSecond } from './quantities.js'
import type { SubjectSpec } from './subject.js'

const format = (n: number): string => n.toLocaleString('en-GB')
const commandsText = (n: number): string => `${n} command${n === 1 ? '' : 's'}`

const asyncTasks = (create: string, params?: unknown): SubjectSpec => ({ module: 'async-tasks', create, params })
const lives = (live: number, hasDeadlines = false): SubjectSpec => asyncTasks('managerLives', { live, hasDeadlines })

const lifeAmongOthers: Figure = {
  id: 'P1',
  lines: ({ isQuick }) =>
    [false, true].flatMap((hasDeadlines) =>
      (isQuick ? [10, 1000, 10_000] : [10, 1000, 10_000, 100_000]).map((live): Line => {
        const name = `a life at ${format(live)} live${hasDeadlines ? ', all with deadlines' : ''}`
        const line = { name, subject: lives(live, hasDeadlines), quantity: cpuUs }
        if (live === 10) return line
        return { ...line, reference: { name: 'itself at 10', subject: lives(10, hasDeadlines) }, goal: { atMost: 1.3 } }
      }),
    ),
}

const lifeAndBareActor: Figure = {
  id: 'P2',
  lines: () => [
    {
      name: 'a life',
      subject: lives(10),
      quantity: cpuUs,
      reference: { name: 'createActor, start, one event', subject: asyncTasks('bareActors') },
      goal: { atMost: 1.5 },
    },
    ...[false, true].map((waits) => ({
      name: `a launched life, ${waits ? 'through a queue of one' : 'with a free slot'}`,
      subject: asyncTasks('launchedLives', { waits }),
      quantity: cpuUs,
      reference: { name: 'createActor, start, one event', subject: asyncTasks('bareActors') },
      goal: { atMost: 4 },
    })),
  ],
}

/** How many times faster than the Map a life has to be, by live tasks. */
const MAP_GOALS: Readonly<Record<number, number>> = { 10_000: 3, 50_000: 20 }

const lifeOnMap: Figure = {
  id: 'P3',
  lines: ({ isQuick }) =>
    [10, 1000, 10_000, ...(isQuick ? [] : [50_000])].map((live): Line => {
      const goal = MAP_GOALS[live]
      return {
        name: `lives at ${format(live)} live`,
        subject: lives(live),
        quantity: perSecond('cpuNs'),
        reference: { name: 'a manager on a plain Map', subject: asyncTasks('seedLives', { live }) },
        ...(goal !== undefined && { goal: { atLeast: goal } }),
      }
    }),
}

const launchAmongMany: Figure = {
  id: 'P4',
  effort: (effort) => ({ ...effort, roundMs: Math.min(effort.roundMs, 60) }),
  lines: ({ isQuick }) => {
    const live = isQuick ? 2000 : 10_000
    return [
      {
        name: `launches at ${format(live)} live`,
        subject: asyncTasks('managerLaunches', { live }),
        quantity: perSecond('cpuNs'),
        reference: { name: 'a machine that uses spawn', subject: asyncTasks('spawnLaunches', { live }) },
        ...(!isQuick && { goal: { atLeast: 50 } }),
      },
    ]
  },
}

/** Bytes a life that cannot be told from no growth. */
const NOISE_BYTES = 0.5

const heap: Figure = {
  id: 'P5',
  // Growth is seen in one process.
  effort: (effort) => ({ ...effort, starts: 1 }),
  lines: ({ isQuick, effort: { rounds } }) => {
    const count = isQuick ? 2000 : 20_000
    const filled = (create: string): SubjectSpec => ({ module: 'heap', create, params: count, isFresh: true })
    const lived = Math.ceil((isQuick ? 20_000 : 1_000_000) / rounds)
    return [
      {
        name: 'heap of a live task',
        subject: filled('liveTasks'),
        quantity: own('bytes'),
        reference: { name: 'a bare started actor', subject: filled('startedActors') },
        goal: { atMost: 1.3 },
      },
      {
        name: 'heap of a retained record',
        subject: filled('retainedRecords'),
        quantity: own('bytes'),
        reference: { name: 'a frozen object of its fields', subject: filled('frozenObjects') },
        goal: { atMost: 2 },
      },
      {
        name: `heap growth over ${format(lived * rounds)} lives`,
        subject: { module: 'heap', create: 'growth', params: lived },
        quantity: own('bytes a life'),
        // In a short run the caches are still being filled.
        ...(!isQuick && { goal: { atMost: NOISE_BYTES } }),
      },
    ]
  },
}

const commandTasks = (create: string, commands: number): SubjectSpec => ({
  module: 'command-tasks',
  create,
  params: { commands },
})

const throughOneLane: Figure = {
  id: 'P6',
  lines: () =>
    [1, 5].flatMap((commands): Line[] => {
      const line = { subject: commandTasks('laneTasks', commands), quantity: perSecond('cpuNs') }
      const name = `tasks of ${commandsText(commands)} through a lane`
      return [
        {
          ...line,
          name,
          reference: { name: 'a manager on plain arrays', subject: commandTasks('seedTasks', commands) },
          goal: { atLeast: 0.25 },
        },
        {
          ...line,
          name: `${name}, for information`,
          reference: { name: 'p-queue', subject: commandTasks('queuedFunctions', commands) },
        },
      ]
    }),
}

const overSockets: Figure = {
  id: 'P7',
  // Long enough that a time slice of another program does not decide a round.
  effort: (effort) => ({ ...effort, roundMs: effort.roundMs * 2 }),
  lines: () =>
    [1, 5].flatMap((commands): Line[] => {
      const load = { clients: 10, instances: 10, window: 8, commands }
      const sides = {
        subject: { module: 'sockets', create: 'packageServer', params: load },
        reference: {
          name: 'that manager behind ws',
          subject: { module: 'sockets', create: 'seedServer', params: load },
        },
      }
      const name = `tasks of ${commandsText(commands)} over WebSockets`
      return [
        { ...sides, name, quantity: perSecond('wallNs'), goal: { atLeast: 1 } },
        { ...sides, name: `p50 of ${name}`, quantity: latencyMs(0.5) },
        { ...sides, name: `p99 of ${name}`, quantity: latencyMs(0.99), goal: { atMost: 1 } },
      ]
    }),
}

const oneEvent: Figure = {
  id: 'P8',
  lines: ({ isQuick }) => {
    const many = isQuick ? 100 : 1000
    const crowd = isQuick ? 500 : 10_000
    const events = (create: string, clients: number, subscribed: number): SubjectSpec => ({
      module: 'broadcast',
      create,
      params: { clients, subscribed },
    })
    return [
      {
        name: `one event to ${format(many)} subscribers`,
        subject: events('serverEvents', many, many),
        quantity: own('us'),
        reference: { name: 'one serialisation, as many raw sends', subject: events('rawSends', many, many) },
        goal: { atMost: 1.2 },
      },
      {
        name: `one event to one of ${format(crowd)} clients`,
        subject: events('serverEvents', crowd, 1),
        quantity: own('us'),
        reference: { name: 'the same with one client', subject: events('serverEvents', 1, 1) },
        goal: { atMost: 1.1 },
      },
    ]
  },
}

const CORES = 2

const raceOrders: Figure = {
  id: 'P9',
  lines: () => [
    {
      name: 'orders of a host with three actors, on two cores',
      subject: { module: 'races', create: 'hostRaces' },
      // Two processes share nothing: they explore twice what one does in its processor time.
      quantity: perSecond('cpuNs', CORES),
      goal: { atLeast: 2000 },
    },
  ],
}

const importTime: Figure = {
  id: 'P10',
  // A round is short, and the start of a process varies.
  effort: (effort) => ({ ...effort, rounds: 3 * effort.rounds }),
  lines: () => [
    {
      name: "time to import 'agent-tasks'",
      subject: { module: 'import', create: 'packageImport', isFresh: true },
      quantity: own('ms'),
      reference: {
        name: 'importing xstate, rxjs and zod',
        subject: { module: 'import', create: 'dependencyImports', isFresh: true },
      },
      goal: { atMost: 1.25 },
    },
  ],
}

const stores = (create: string, params?: unknown): SubjectSpec => ({ module: 'stores', create, params })

const durableLife: Figure = {
  id: 'P11',
  lines: () => [
    ...[1, 100].map((atOnce): Line => ({
      name: atOnce === 1 ? 'durable lives, alone' : `durable lives, ${atOnce} in one tick`,
      subject: stores('durableLives', { atOnce }),
      // A commit waits for the disk.
      quantity: perSecond('wallNs', atOnce),
      reference: { name: 'the same rows by hand', subject: stores('handwrittenLives', { atOnce }) },
      goal: { atLeast: atOnce === 1 ? 0.5 : 1 },
    })),
    {
      name: 'from the end of a run to the start of its delivery',
      subject: stores('endToDelivery'),
      quantity: own('us'),
      reference: { name: 'one committed row', subject: stores('oneCommit') },
      goal: { atMost: 2 },
    },
  ],
}

const recovery: Figure = {
  id: 'P12',
  lines: ({ isQuick }) => {
    const stored = { past: isQuick ? 2000 : 100_000, owed: isQuick ? 20 : 1000 }
    const fresh = (create: string): SubjectSpec => ({ ...stores(create, stored), isFresh: true })
    const what = `${format(stored.owed)} owed tasks beside a history of ${format(stored.past)}`
    return [
      {
        name: `recovery of ${what}`,
        subject: fresh('recovery'),
        quantity: own('ms'),
        reference: { name: 'reading the rows', subject: fresh('rowsRead') },
        goal: { atMost: 3 },
      },
      {
        name: `size of the files of ${what}`,
        subject: fresh('fileSize'),
        quantity: own('bytes a task'),
        reference: { name: 'their JSON', subject: fresh('rowBytes') },
        goal: { atMost: 3 },
      },
    ]
  },
}

const durableCommandTasks: Figure = {
  id: 'P13',
  lines: () => [
    ...[1, 10].map((lanes): Line => {
      const load = { commands: 1, lanes, isDurable: true }
      return {
        name: `durable command tasks, ${lanes === 1 ? 'one lane' : `${lanes} lanes`}`,
        subject: { module: 'command-tasks', create: 'laneTasks', params: load },
        // A commit waits for the disk.
        quantity: perSecond('wallNs'),
        // Without a Redis there is nothing to compare with.
        ...(findRedis() !== undefined && {
          reference: {
            name: 'BullMQ on Redis, appendfsync always',
            subject: { module: 'redis-jobs', create: 'redisJobs', params: load },
          },
        }),
        goal: { atLeast: 1 },
      }
    }),
    {
      name: 'p99 of a timer of 1 ms beside 200 durable tasks a second, commits + 3 ms',
      subject: stores('timerBesideTasks', { tasksPerSecond: 200, commitMs: 3 }),
      quantity: latencyMs(0.99),
      goal: { atMost: 10 },
    },
  ],
}

const durableLifeOnServer: Figure = {
  id: 'P17',
  lines: () =>
    // Without a PostgreSQL there is nothing to measure.
    hasPostgres()
      ? [1, 100].map((atOnce): Line => ({
          name: `durable lives on PostgreSQL, ${atOnce === 1 ? 'alone' : `${atOnce} in one tick`}`,
          subject: { module: 'postgres', create: 'livesOnServer', params: { atOnce } },
          quantity: perSecond('wallNs', atOnce),
          reference: { name: 'in an SQLite file', subject: stores('durableLives', { atOnce }) },
        }))
      : [],
}

const runsOnWorkers: Figure = {
  id: 'P14',
  // The code of a run on a worker is optimised after some 5,000 of them. A process that was idle is slower: all wait as long for their rounds.
  effort: (effort) => ({ ...effort, starts: 1, warmMs: 4 * effort.warmMs }),
  lines: () => {
    // Without a Redis there is nothing to measure.
    if (findRedis() === undefined) return []
    const sides = (atOnce: number) => ({
      subject: { module: 'runs-on-workers', create: 'throughRunner', params: { atOnce } },
      reference: {
        name: 'the same payload as jobs of BullMQ',
        subject: { module: 'runs-on-workers', create: 'jobsAlone', params: { atOnce } },
      },
    })
    return [
      { ...sides(32), name: 'runs on a worker, 32 at once', quantity: perSecond('wallNs'), goal: { atLeast: 0.7 } },
      { ...sides(1), name: 'p50 of a run on a worker', quantity: latencyMs(0.5), goal: { atMost: 1.3 } },
    ]
  },
}

const page: Figure = {
  id: 'P16',
  // A round takes as long as it looks at the screen.
  effort: (effort) => ({ ...effort, starts: 1, warmMs: 1 }),
  lines: ({ isQuick }) => {
    const tasks = isQuick ? 1000 : 10_000
    const load = { tasks, eventsPerSecond: 200, measureMs: isQuick ? 1000 : 4000 }
    const what = `with ${format(tasks)} tasks and ${load.eventsPerSecond} events a second`
    const shown = (create: string): SubjectSpec => ({ module: 'page', create, params: load })
    return [
      {
        name: 'what the page sends, gzipped',
        subject: { module: 'page', create: 'sentBytes' },
        quantity: own('bytes'),
        goal: { atMost: PAGE_LIMIT },
      },
      {
        name: `p95 of the frame time ${what}, above an empty page`,
        subject: shown('frameTime'),
        quantity: own('ms'),
        goal: { atMost: 16.7 },
      },
      {
        name: `p95 from an event to the screen ${what}`,
        subject: shown('eventToScreen'),
        quantity: own('ms'),
        goal: { atMost: 100 },
      },
    ]
  },
}

const conversations: Figure = {
  id: 'P18',
  effort: (effort) => ({ ...effort, starts: 1 }),
  lines: ({ isQuick }) => {
    const count = isQuick ? 1000 : 10_000
    const many = format(count)
    const of = (create: string, params: unknown): SubjectSpec => ({ module: 'conversations', create, params })
    const idle = (hasTurns: boolean): SubjectSpec => ({
      ...of('idleConversations', { count, hasTurns }),
      isFresh: true,
    })
    return [
      { name: 'heap of an open conversation', subject: idle(false), quantity: own('bytes'), goal: { atMost: 600 } },
      { name: 'heap of one after two turns', subject: idle(true), quantity: own('bytes'), goal: { atMost: 2500 } },
      {
        name: `timers of ${many} after two turns each`,
        subject: { ...of('idleTimers', count), isFresh: true },
        quantity: own('timers'),
        goal: { atMost: 0 },
      },
      {
        name: `a delivery in one of ${many}`,
        subject: of('deliveredAmong', count),
        quantity: cpuUs,
        reference: { name: 'in one alone', subject: of('deliveredAmong', 0) },
        goal: { atMost: 1.1 },
      },
      {
        name: `each of ${many} that are owed a result at once`,
        subject: { ...of('owedAtOnce', count), isFresh: true },
        quantity: own('ms'),
        goal: { atMost: 1 },
      },
    ]
  },
}

export const figures: readonly Figure[] = [
  lifeAmongOthers,
  lifeAndBareActor,
  lifeOnMap,
  launchAmongMany,
  heap,
  throughOneLane,
  overSockets,
  oneEvent,
  raceOrders,
  importTime,
  durableLife,
  recovery,
  durableCommandTasks,
  runsOnWorkers,
  ...clusterCosts,
  page,
  durableLifeOnServer,
  conversations,
]
