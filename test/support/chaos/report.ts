/** The output of the chaos test. */
import type { Fault } from './faults.js'
import type { Takeover, Verdict, Work } from './judge.js'

/** The maximum number of findings of one kind that are printed. */
const MOST = 20

export interface Told {
  readonly title: string
  readonly works: readonly Work[]
  readonly verdict: Verdict
}

/** A line for each fault: its time, its kind and what it hit. */
export function faultLines(faults: readonly Fault[], startedAt: number): string[] {
  return faults.map(({ kind, target, index, at, ms }) => {
    const whom = kind === 'cut' ? `${target}, each ${index}.` : `${target} ${index}`
    return `${seconds(at - startedAt)}  ${kind} ${whom}${ms > 0 ? ` for ${seconds(ms).trim()}` : ''}`
  })
}

/** The lines with the totals, the takeovers and the findings. */
export function reportLines({ title, works, verdict }: Told): string[] {
  const { takeovers, lost, twice, outOfOrder, twoAtOnce, besidePaused, begunAnyway, forNothing } = verdict
  const ends = works.map(({ ends: [end], isRefused }) => (isRefused ? 'refused' : (end?.status ?? 'none')))
  const count = (status: string): number => ends.filter((end) => end === status).length
  const deeds = works.reduce((sum, work) => sum + work.deeds.length, 0)
  const found = { lost, twice, 'out of order': outOfOrder, 'two at once': twoAtOnce }
  return [
    `${title}: ${works.length} tasks, ${deeds} runs; completed ${count('completed')}, failed ${count('failed')}, refused ${count('refused')}`,
    ...takeoverLines(takeovers),
    `  ${Object.entries(found)
      .map(([what, names]) => `${what} ${names.length}`)
      .join(
        ', ',
      )}; beside one that was paused ${besidePaused.length}, begun though their launch had failed ${begunAnyway.length}, given up for nothing ${forNothing.length}`,
    ...Object.values({ ...found, forNothing }).flatMap((names) => names.slice(0, MOST).map((name) => `    ${name}`)),
  ]
}

function takeoverLines(takeovers: readonly Takeover[]): string[] {
  const kinds = ['kill', 'pause', 'cut', 'redis'] as const
  return kinds.flatMap((kind) => {
    const times = takeovers.flatMap((one) => (one.kind === kind ? [one.ms] : [])).toSorted((one, other) => one - other)
    const at = (share: number): string => seconds(times[Math.floor((times.length - 1) * share)] ?? 0).trim()
    return times.length === 0
      ? []
      : [`  ${times.length} takeovers after ${kind}: min ${at(0)}, p50 ${at(0.5)}, max ${at(1)}`]
  })
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(2).padStart(8)} s`
