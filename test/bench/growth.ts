/** How the cost of an operation grows with the number of live tasks, records, clients and lanes: what docs/performance.svg shows. */
import type { Scale } from './figure.js'
import { interleave } from './interleave.js'
import { quantile } from './statistics.js'
import type { SubjectSpec } from './subject.js'

export interface Series {
  readonly name: string
  readonly points: readonly (readonly [size: number, us: number])[]
}

export interface Panel {
  readonly title: string
  readonly across: string
  readonly series: readonly Series[]
}

const SIZES = [1, 10, 100, 1000, 10_000, 100_000]

const life = (params: object): SubjectSpec => ({ module: 'async-tasks', create: 'managerLives', params })

export async function measureGrowth({ isQuick, effort, checkout }: Scale): Promise<Panel[]> {
  /** Measures one operation at each size; the sizes take turns. */
  const sweep = async (name: string, most: number, specOf: (size: number) => SubjectSpec): Promise<Series> => {
    const sizes = SIZES.filter((size) => size <= Math.min(most, isQuick ? 1000 : most))
    const rounds = await interleave(
      sizes.map((size) => ({ ...specOf(size), checkout })),
      effort,
    )
    const points = sizes.map((size, at) => {
      const us = (rounds[at] ?? []).map((round) => round.own ?? round.cpuNs / 1000)
      return [size, quantile(us, 0.5)] as const
    })
    return { name, points }
  }
  return [
    {
      title: "One async task's life",
      across: 'live tasks',
      series: [
        await sweep('agent-tasks', 100_000, (live) => life({ live })),
        await sweep('a plain Map', 10_000, (live) => ({
          module: 'async-tasks',
          create: 'seedLives',
          params: { live },
        })),
      ],
    },
    {
      title: "One async task's life",
      across: 'retained records',
      series: [await sweep('agent-tasks', 100_000, (retained) => life({ live: 10, retained }))],
    },
    {
      title: 'One event to one subscriber',
      across: 'connected clients',
      series: [
        await sweep('agent-tasks', 10_000, (clients) => ({
          module: 'broadcast',
          create: 'serverEvents',
          params: { clients, subscribed: 1 },
        })),
      ],
    },
    {
      title: 'One task of one command',
      across: 'lanes that run side by side',
      series: [
        await sweep('agent-tasks', 100, (lanes) => ({
          module: 'command-tasks',
          create: 'laneTasks',
          params: { commands: 1, lanes },
        })),
      ],
    },
  ]
}
