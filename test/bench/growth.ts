/** How cost grows: the same operations, among more and more of everything. What docs/performance.svg shows. */
import type { Scale, Series } from './figure.js'
import { interleave } from './interleave.js'
import type { SubjectSpec } from './subject.js'

/** One panel of the picture. */
export interface Panel {
  readonly title: string
  readonly across: string
  readonly series: readonly Series[]
}

const LIVE = [10, 100, 1000, 10_000, 100_000]

/** Measures one operation at each size; the sizes take turns. */
async function sweep(
  name: string,
  sizes: readonly number[],
  specOf: (size: number) => SubjectSpec,
  { effort }: Scale,
): Promise<Series> {
  const measured = await interleave(Object.fromEntries(sizes.map((size) => [`${size}`, specOf(size)])), effort)
  return { name, points: sizes.map((size) => [size, (measured[`${size}`]?.cpuNs.median ?? NaN) / 1000] as const) }
}

export async function measureGrowth(scale: Scale): Promise<Panel[]> {
  const most = scale.isQuick ? 1000 : 100_000
  const upTo = (limit: number): number[] => LIVE.filter((size) => size <= Math.min(limit, most))
  const life = (crowd: object): SubjectSpec => ({ module: 'async-tasks', create: 'managerLives', params: crowd })
  return [
    {
      title: "One async task's life",
      across: 'live tasks',
      series: [
        await sweep('agent-tasks', upTo(100_000), (live) => life({ live }), scale),
        await sweep(
          'seed 000 on a Map',
          upTo(10_000),
          (live) => ({ module: 'async-tasks', create: 'seedLives', params: { live } }),
          scale,
        ),
      ],
    },
    {
      title: "One async task's life",
      across: 'retained records',
      series: [await sweep('agent-tasks', upTo(100_000), (retained) => life({ live: 10, retained }), scale)],
    },
    {
      title: 'One event to one subscriber',
      across: 'connected clients',
      series: [
        await sweep(
          'agent-tasks',
          [1, ...upTo(scale.isQuick ? 100 : 10_000)],
          (clients) => ({ module: 'broadcast', create: 'serverEvents', params: { clients, subscribed: 1 } }),
          scale,
        ),
      ],
    },
    {
      title: 'One task of one command',
      across: 'lanes that run side by side',
      series: [
        await sweep(
          'agent-tasks',
          [1, ...upTo(100)],
          (lanes) => ({ module: 'command-tasks', create: 'laneTasks', params: { commands: 1, lanes } }),
          scale,
        ),
      ],
    },
  ]
}
