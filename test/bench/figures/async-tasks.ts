/** P1 to P4: what one async task's life costs, in which crowd, and compared with what. */
import type { Figure, Row } from '../figure.js'
import { interleave, ratioOf, type Measured } from '../interleave.js'
import type { SubjectSpec } from '../subject.js'

const spec = (create: string, params?: unknown): SubjectSpec => ({ module: 'async-tasks', create, params })

const count = (n: number): string => n.toLocaleString('en-GB')

export const lifeInACrowd: Figure = {
  id: 'P1',
  title: "One task's life among other live tasks",
  async measure({ isQuick, effort }) {
    const crowds = isQuick ? [10, 1000, 10_000] : [10, 1000, 10_000, 100_000]
    const most = crowds.at(-1) ?? 0
    const { first, ...measured } = await interleave<string>(
      {
        ...Object.fromEntries(crowds.map((live) => [`${live}`, spec('managerLives', { live })])),
        first: spec('managerLives', { live: most, isFirst: true }),
      },
      effort,
    )
    const alone = measured['10']
    const row = (name: string, here: Measured | undefined, more: Partial<Row> = {}): Row[] => {
      if (here === undefined || alone === undefined) return []
      const ratio = here !== alone && { ratio: ratioOf(here, alone), reference: 'itself at 10' }
      return [{ figure: 'P1', name, value: here.cpuNs.median / 1000, unit: 'us', ...ratio, ...more }]
    }
    return [
      ...crowds.flatMap((live) =>
        row(`a life at ${count(live)} live`, measured[`${live}`], live === most ? { goal: { atMost: 1.3 } } : {}),
      ),
      ...row(`a life at ${count(most)} live, before which none had ended`, first),
    ]
  },
}

export const lifeOfABareActor: Figure = {
  id: 'P2',
  title: 'The same life and a bare actor',
  async measure({ effort }) {
    const { life, bare } = await interleave(
      { life: spec('managerLives', { live: 10 }), bare: spec('bareActors') },
      effort,
    )
    return [
      {
        figure: 'P2',
        name: 'a life',
        value: life.cpuNs.median / 1000,
        unit: 'us',
        ratio: ratioOf(life, bare),
        reference: 'createActor, start, one event',
        goal: { atMost: 1.5 },
        note: `the bare actor takes ${(bare.cpuNs.median / 1000).toFixed(2)} us`,
      },
    ]
  },
}

/** How many times faster than seed 000 a life must be, at how many live tasks. */
const SEED_GOALS: Readonly<Record<number, number>> = { 10_000: 3, 50_000: 25 }

export const lifeInSeed000: Figure = {
  id: 'P3',
  title: 'The same life in seed 000',
  async measure({ isQuick, effort }) {
    const rows: Row[] = []
    for (const live of isQuick ? [10, 1000, 10_000] : [10, 1000, 10_000, 50_000]) {
      const { ours, seed } = await interleave(
        { ours: spec('managerLives', { live }), seed: spec('seedLives', { live }) },
        effort,
      )
      const goal = SEED_GOALS[live]
      rows.push({
        figure: 'P3',
        name: `speed of a life at ${count(live)} live`,
        value: ours.cpuNs.median / 1000,
        unit: 'us',
        ratio: ratioOf(seed, ours),
        reference: 'seed 000 on a Map',
        ...(goal !== undefined && { goal: { atLeast: goal } }),
        note: `seed 000 takes ${(seed.cpuNs.median / 1000).toFixed(2)} us`,
      })
    }
    return rows
  },
}

export const launchAmongMany: Figure = {
  id: 'P4',
  title: 'Launch in a registry of 10,000',
  async measure({ isQuick, effort }) {
    const live = isQuick ? 2000 : 10_000
    const { ours, spawned } = await interleave(
      { ours: spec('managerLaunches', { live }), spawned: spec('spawnLaunches', { live }) },
      { ...effort, roundMs: Math.min(effort.roundMs, 60) },
    )
    return [
      {
        figure: 'P4',
        name: `speed of a launch at ${count(live)} live`,
        value: ours.cpuNs.median / 1000,
        unit: 'us',
        ratio: ratioOf(spawned, ours),
        reference: 'spawn',
        ...(!isQuick && { goal: { atLeast: 50 } }),
        note: `spawn takes ${(spawned.cpuNs.median / 1000).toFixed(2)} us`,
      },
    ]
  },
}
