/**
 * Judges a chaos run from outside: by the answers that clients received, and by the records of instances and programs. It knows only when Redis, nodes
 * and workers were hit by faults, and nothing of what they do.
 */
import type { Fault } from './faults.js'

/** One call of an instance, or one attempt of a run: something that was done. */
export interface Deed {
  readonly attempt: number
  readonly from: number
  /** When the call or attempt ended; undefined if it did not end, because its process was killed. */
  to: number | undefined
  /** The pid of its process; 0 for a process that no fault hits. */
  readonly pid: number
}

/** The end of a task, as its client received it. */
export interface End {
  readonly status: string
  readonly code?: string | undefined
  readonly at: number
  readonly attempt: number
  /** The lines that the task has written, if they are known. */
  readonly lines?: readonly string[] | undefined
}

/** A task: a command task of a client, or a run of a host. */
export interface Work {
  readonly name: string
  /** Works with the same lane must not overlap: the tasks of one instance, or the attempts of one run. */
  readonly lane: string
  /** When its client sent it (`sentAt`), and when the server answered (`answeredAt`). */
  readonly sentAt: number
  answeredAt?: number
  /** Whether the server refused it each time. Then it must never run. */
  isRefused?: boolean
  readonly ends: End[]
  /** The last answer that its client received about the task, if the task has no end. */
  lastSeen?: string
  readonly deeds: Deed[]
  /** How many lines an attempt writes. Each line has the form `attempt.number`, such as `2.7`. */
  readonly lineCount?: number
}

/** A time in which a process did not run. */
export interface Silence {
  readonly pid: number
  readonly from: number
  readonly to: number
}

/** How long it took until another process took a task over, or gave it up, in ms. */
export interface Takeover {
  readonly kind: Fault['kind']
  readonly ms: number
}

export interface Verdict {
  readonly lost: readonly string[]
  readonly twice: readonly string[]
  readonly outOfOrder: readonly string[]
  readonly twoAtOnce: readonly string[]
  /** Two that overlap, of which the process of the first was paused. Nothing can prevent that. */
  readonly besidePaused: readonly string[]
  /**
   * Tasks that began although their launch had failed: Redis had taken the task, and its answer was lost. They are cancelled when Redis answers their
   * host again.
   */
  readonly begunAnyway: readonly string[]
  /** Tasks that were interrupted or given up although no fault had hit anything. */
  readonly forNothing: readonly string[]
  readonly takeovers: readonly Takeover[]
}

/** The codes with which a task may fail when a fault hits a process. */
const GIVEN_UP = ['INSTANCE_DISCONNECTED', 'INTERRUPTED', 'START_FAILED']

export function judge(works: readonly Work[], faults: readonly Fault[], silences: readonly Silence[]): Verdict {
  const killedAt = new Map(faults.flatMap(({ kind, pid, at }) => (kind === 'kill' ? [[pid, at] as const] : [])))
  const endOf = ({ to, pid }: Deed): number => to ?? killedAt.get(pid) ?? Infinity
  const pauses = faults.flatMap(({ kind, pid, at, ms }) => (kind === 'pause' ? [{ pid, from: at, to: at + ms }] : []))
  const silent = groupBy([...pauses, ...silences], ({ pid }) => pid)
  const wasSilent = (deed: Deed): boolean =>
    silent.get(deed.pid)?.some(({ from, to }) => from < endOf(deed) && to > deed.from) === true
  const overlaps = Array.from(groupBy(works, ({ lane }) => lane).values(), (lane) => overlapsOf(lane, endOf)).flat()
  const interruptions = works.flatMap(interruptionsOf)
  const causes = interruptions.map((one) => ({ ...one, cause: causeOf(one, faults) }))
  return {
    lost: works.flatMap(lossOf),
    twice: works.flatMap(repeatOf),
    outOfOrder: [...works.flatMap(disorderOf), ...overtakingsOf(works)],
    twoAtOnce: overlaps.filter(({ first }) => !wasSilent(first)).map(({ text }) => text),
    besidePaused: overlaps.filter(({ first }) => wasSilent(first)).map(({ text }) => text),
    begunAnyway: works.flatMap(({ name, ends: [end], deeds }) =>
      end?.code === 'START_FAILED' && deeds.some(({ attempt }) => attempt === end.attempt) ? [name] : [],
    ),
    forNothing: causes.flatMap(({ name, cause }) => (cause === undefined ? [name] : [])),
    takeovers: causes.flatMap(({ cause, until }) => (cause ? [{ kind: cause.kind, ms: until - cause.at }] : [])),
  }
}

/** Finds losses. An accepted task must have an end. A completed task must have run to its end, and all of its lines must have arrived. */
function lossOf({ name, answeredAt, isRefused, ends, deeds, lineCount, lastSeen = '' }: Work): string[] {
  if (answeredAt === undefined || isRefused === true) return []
  const [end] = ends
  if (end === undefined) return [`${name} has no end ${lastSeen}`]
  const { status, code, attempt } = end
  if (status === 'failed') return GIVEN_UP.includes(code ?? '') ? [] : [`${name} has failed with ${code}`]
  if (status === 'cancelled') return []
  const done = deeds.some((deed) => deed.attempt === attempt && deed.to !== undefined)
  if (!done) return [`${name} has completed, and attempt ${attempt} has not ended`]
  if (end.lines === undefined) return []
  const lines = end.lines.filter((line) => line.startsWith(`${attempt}.`)).length
  return lines === lineCount ? [] : [`${name} has ${lines} of ${lineCount} lines of attempt ${attempt}`]
}

/** Finds repetitions. No attempt may run twice, a refused task may not run, and a task may have only one end. */
function repeatOf({ name, isRefused, ends, deeds }: Work): string[] {
  const attempts = deeds.map(({ attempt }) => attempt)
  const ran = attempts.filter((attempt, at) => attempts.indexOf(attempt) !== at)
  const kinds = new Set(ends.map(({ status, attempt, code }) => `${status} ${attempt} ${code}`))
  return [
    ...ran.map((attempt) => `${name} has run twice as attempt ${attempt}`),
    ...(kinds.size > 1 ? [`${name} has ended as ${[...kinds].join(', then as ')}`] : []),
    ...(isRefused === true && deeds.length > 0 ? [`${name} was refused, and has run`] : []),
  ]
}

/** Finds lines that arrived in another order than the run wrote them. */
function disorderOf({ name, ends }: Work): string[] {
  const lines = ends[0]?.lines ?? []
  const places = lines.map((line) => line.split('.').map(Number)).map(([attempt = 0, n = 0]) => attempt * 1e6 + n)
  const at = places.findIndex((place, index) => index > 0 && place <= (places[index - 1] ?? 0))
  return at === -1 ? [] : [`${name} has written ${lines[at]} after ${lines[at - 1]}`]
}

/** Finds tasks that overtook others. If the server accepted a task before another task of its lane was sent, the first one must start first. */
function overtakingsOf(works: readonly Work[]): string[] {
  return Array.from(groupBy(works, ({ lane }) => lane).values(), (lane) => {
    const started = lane.flatMap((work) => (work.deeds[0] ? [{ work, from: work.deeds[0].from }] : []))
    let latest: Work | undefined
    return started
      .toSorted((one, other) => one.from - other.from)
      .flatMap(({ work }) => {
        const found = latest !== undefined && latest.sentAt > (work.answeredAt ?? Infinity) ? [latest.name] : []
        if (latest === undefined || work.sentAt > latest.sentAt) latest = work
        return found.map((name) => `${name} has overtaken ${work.name}`)
      })
  }).flat()
}

interface Overlap {
  readonly first: Deed
  readonly text: string
}

function overlapsOf(lane: readonly Work[], endOf: (deed: Deed) => number): Overlap[] {
  const all = lane.flatMap((work) => work.deeds.map((deed) => ({ work, deed })))
  let last: (typeof all)[number] | undefined
  return all
    .toSorted((one, other) => one.deed.from - other.deed.from)
    .flatMap((one) => {
      const before = last
      if (last === undefined || endOf(one.deed) > endOf(last.deed)) last = one
      if (before === undefined || endOf(before.deed) <= one.deed.from) return []
      const both = Math.min(endOf(before.deed), endOf(one.deed)) - one.deed.from
      const [first, second] = [before, one].map(({ work, deed }) => `${work.name} (attempt ${deed.attempt})`)
      return [{ first: before.deed, text: `${first} and ${second} for ${both} ms` }]
    })
}

interface Interruption {
  readonly name: string
  readonly pid: number
  readonly from: number
  /** When the task continued in another attempt, or was given up. */
  readonly until: number
}

/** Finds the attempts without a result: another attempt followed, or the task was given up. */
function interruptionsOf({ name, deeds, ends, sentAt }: Work): Interruption[] {
  const inOrder = deeds.toSorted((one, other) => one.attempt - other.attempt)
  const followed = inOrder.slice(1).map((next, at) => ({ before: inOrder[at], until: next.from }))
  const [end] = ends
  const isGivenUp = end?.status === 'failed' && GIVEN_UP.includes(end.code ?? '')
  const givenUp = isGivenUp ? [{ before: inOrder.at(-1), until: end.at }] : []
  return [...followed, ...givenUp].map(({ before, until }) => {
    return { name, until, pid: before?.pid ?? 0, from: before?.from ?? sentAt }
  })
}

/** How long a fault may have effects after its end, in ms. Within this time connections come back, and locks end. */
const AFTER_MS = 10_000

/**
 * Finds the fault that caused an interruption: one that hit the process of the attempt while it ran. Otherwise one that hit connections, Redis, a host
 * or a node.
 */
function causeOf({ pid, from, until }: Interruption, faults: readonly Fault[]): Fault | undefined {
  const near = faults.filter(({ at, ms }) => at <= until && at + ms + AFTER_MS >= from)
  return (
    near.find((fault) => fault.pid === pid && pid !== 0 && fault.at >= from) ??
    near.find((fault) => fault.at >= from && fault.target !== 'worker') ??
    near.at(-1)
  )
}

function groupBy<T, Key>(all: readonly T[], keyOf: (one: T) => Key): Map<Key, T[]> {
  const groups = new Map<Key, T[]>()
  for (const one of all) {
    const group = groups.get(keyOf(one))
    if (group === undefined) groups.set(keyOf(one), [one])
    else group.push(one)
  }
  return groups
}
