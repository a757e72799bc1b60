/**
 * Judges what happened from outside: what clients were answered, and what instances and the programs of runs have recorded. It knows nothing of Redis, nodes
 * and workers but when they were struck.
 */
import type { Fault } from './faults.js'

/** One call of an instance, or one attempt of a run. */
export interface Deed {
  readonly attempt: number
  readonly from: number
  /** When it has ended; undefined when it never has, as its process was killed. */
  to: number | undefined
  /** Its process; 0 for one that nothing strikes. */
  readonly pid: number
}

/** What its client was told of the end. */
export interface End {
  readonly status: string
  readonly code?: string | undefined
  readonly at: number
  readonly attempt: number
  /** What it has written, line by line, where that is known. */
  readonly lines?: readonly string[] | undefined
}

/** A task of either kind. */
export interface Work {
  readonly name: string
  /** What runs one at a time: an instance, or a task with its attempts. */
  readonly lane: string
  /** When its client began to submit it, and when that was answered. */
  readonly sentAt: number
  answeredAt?: number
  /** Whether each answer was a refusal: it must never run. */
  isRefused?: boolean
  readonly ends: End[]
  /** What its client has seen of it, when it has no end. */
  lastSeen?: string
  readonly deeds: Deed[]
  /** How many lines an attempt writes, as `attempt.number`. */
  readonly lineCount?: number
}

/** A process that did nothing for so long. */
export interface Silence {
  readonly pid: number
  readonly from: number
  readonly to: number
}

/** A task that another process has taken over, or given up: how long that took, in ms. */
export interface Takeover {
  readonly kind: Fault['kind']
  readonly ms: number
}

export interface Verdict {
  readonly lost: readonly string[]
  readonly twice: readonly string[]
  readonly outOfOrder: readonly string[]
  readonly twoAtOnce: readonly string[]
  /** Two at once, of which the first was paused, which nobody can prevent. */
  readonly besidePaused: readonly string[]
  /** Begun although their launch had failed: Redis had taken them, and its answer was lost. They are cancelled when Redis answers their host. */
  readonly begunAnyway: readonly string[]
  /** Given up although nothing had struck. */
  readonly forNothing: readonly string[]
  readonly takeovers: readonly Takeover[]
}

/** What a task may fail with when a machine is struck. */
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

/** An accepted task has one end, and a task that completed has run to its end and said all. */
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

/** No attempt runs twice, what was refused or not started never runs, and there is one end. */
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

/** What a run writes arrives in its order. */
function disorderOf({ name, ends }: Work): string[] {
  const lines = ends[0]?.lines ?? []
  const places = lines.map((line) => line.split('.').map(Number)).map(([attempt = 0, n = 0]) => attempt * 1e6 + n)
  const at = places.findIndex((place, index) => index > 0 && place <= (places[index - 1] ?? 0))
  return at === -1 ? [] : [`${name} has written ${lines[at]} after ${lines[at - 1]}`]
}

/** What was answered before another task of its lane was sent starts before that. */
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
  /** When it went on, or was given up. */
  readonly until: number
}

/** The attempts that did not count: another one followed, or the task was given up. */
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

/** How long a fault may have effects after its end, in ms: connections come back, and locks end. */
const AFTER_MS = 10_000

/** What struck its process while it ran, or else what struck the connections or Redis, or a node. */
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
