/** Small charts at random, with all that a chart may have; what they do is written in a log. */
import fc from 'fast-check'
import { assign, createMachine, raise, type AnyStateMachine } from 'xstate'

const NAMES = [
  ...['a', 'b', 'c', 'd', 'a1', 'a2', 'b1', 'b2', 'end', 'b3'],
  ...['p', 'q', 'p1', 'p2', 'q1', 'q2', 'q3'],
] as const
type Name = (typeof NAMES)[number]

/** What is inside what; the first is where it begins, but for `c`, whose regions are on together. */
const INSIDE: Partial<Record<Name, readonly Name[]>> = {
  a: ['a1', 'a2'],
  b: ['b1', 'b2', 'b3'],
  c: ['p', 'q'],
  p: ['p1', 'p2'],
  q: ['q1', 'q2', 'q3'],
}
const PARALLEL: Name = 'c'
const FINAL: readonly Name[] = ['end', 'b3', 'q3']

/** The events a random chart may be sent; the last two are covered by a wildcard, or by nothing. */
export const EVENTS = ['one', 'two', 'three', 'ext.1', 'ext.2'] as const

interface RandomTransition {
  /** Which of the states; undefined: none. */
  readonly target: number | undefined
  /** One of those beside it. */
  readonly isNear: boolean
  readonly guard: 'isSmall' | 'isEven' | 'never' | undefined
  readonly does: 'log' | 'count' | 'countTwice' | 'raise'
  readonly reenter: boolean
}

interface RandomState {
  readonly on: Readonly<Record<string, readonly RandomTransition[]>>
  readonly always: RandomTransition | undefined
  readonly hasEntry: boolean
  readonly hasExit: boolean
  readonly isDelayed: boolean
}

export type RandomChart = Readonly<Record<Name, RandomState>>

const transition: fc.Arbitrary<RandomTransition> = fc.record({
  target: fc.option(fc.nat(NAMES.length - 1), { nil: undefined }),
  isNear: fc.boolean(),
  guard: fc.option(fc.constantFrom('isSmall' as const, 'isEven' as const, 'never' as const), { nil: undefined }),
  does: fc.constantFrom('log' as const, 'log' as const, 'count' as const, 'countTwice' as const, 'raise' as const),
  reenter: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
})

const rarely = fc.integer({ min: 0, max: 9 }).map((n) => n === 0)

const state: fc.Arbitrary<RandomState> = fc.record({
  on: fc.dictionary(
    fc.constantFrom('one', 'two', 'three', 'ext.*'),
    fc.array(transition, { minLength: 1, maxLength: 2 }),
  ),
  // It counts and is bounded by the count, so that no chart turns in circles.
  always: fc.option(
    transition.map((one) => ({ ...one, guard: 'isSmall' as const, does: 'count' as const })),
    { nil: undefined, freq: 3 },
  ),
  hasEntry: fc.boolean(),
  hasExit: fc.boolean(),
  isDelayed: rarely,
})

export const randomChart: fc.Arbitrary<RandomChart> = fc.record(
  Object.fromEntries(NAMES.map((name) => [name, state])) as Record<Name, typeof state>,
)

/** A state and those beside it. */
const beside = (name: Name): readonly Name[] =>
  Object.values(INSIDE).find((names) => names.includes(name)) ?? ['a', 'b', 'c', 'd', 'end']

/** Makes the chart; what it does goes into `log`. */
export function buildChart(chart: RandomChart, log: string[]): AnyStateMachine {
  const toTransition = (from: Name, { target: at, isNear, guard: given, does, reenter }: RandomTransition) => {
    // Two regions that both raise what makes them raise double their timers each time: the count bounds that as well.
    const guard = does === 'raise' ? 'isSmall' : given
    const among = isNear ? beside(from) : NAMES
    const target = at === undefined ? undefined : among[at % among.length]
    return {
      ...(target !== undefined && { target: `#${target}` }),
      ...(guard !== undefined && { guard }),
      ...(reenter && { reenter }),
      actions: [
        { type: 'log', params: { text: `${from} to ${target ?? 'itself'}` } },
        ...(does === 'log' ? [] : does === 'raise' ? ['count', 'raise'] : [does]),
      ],
    }
  }
  const toState = (name: Name): object => {
    const children = INSIDE[name] ?? []
    const { on, always, hasEntry, hasExit, isDelayed } = chart[name]
    const isFinal = FINAL.includes(name)
    const edge = (kind: string) => ({ type: 'log', params: { text: `${kind} ${name}` } })
    return {
      id: name,
      ...(hasEntry && { entry: edge('enter') }),
      ...(hasExit && { exit: edge('leave') }),
      ...(isFinal
        ? { type: 'final' }
        : {
            on: Object.fromEntries(
              Object.entries(on).map(([type, all]) => [type, all.map((one) => toTransition(name, one))]),
            ),
            ...(always !== undefined && { always: toTransition(name, always) }),
            ...(isDelayed && { after: { 1000: { target: '#a' } } }),
            ...(children.length > 0 && {
              ...(name === PARALLEL ? { type: 'parallel' } : { initial: children[0] }),
              states: Object.fromEntries(children.map((child) => [child, toState(child)])),
            }),
          }),
    }
  }
  return createMachine(
    {
      id: 'random',
      context: ({ input }: { input: { n: number } }) => ({ n: input.n }),
      initial: 'a',
      states: {
        a: toState('a'),
        b: toState('b'),
        c: toState('c'),
        d: toState('d'),
        end: toState('end'),
      },
      output: ({ context }: { context: { n: number } }) => ({ ended: context.n }),
    } as never,
    {
      guards: {
        isSmall: ({ context }: { context: { n: number } }) => context.n < 12,
        isEven: ({ context }: { context: { n: number } }) => context.n % 2 === 0,
        never: () => false,
      },
      actions: {
        log: ({ context, event }: { context: { n: number }; event: { type: string } }, params: { text: string }) => {
          log.push(`${params.text} on ${event.type.startsWith('ext.') ? 'ext' : event.type} with ${context.n}`)
        },
        count: assign({ n: ({ context }: { context: { n: number } }) => context.n + 1 }),
        countTwice: assign(({ context }: { context: { n: number } }) => ({ n: context.n + 2 })),
        raise: raise({ type: 'three' }, { id: 'raised', delay: 5 }),
      },
    } as never,
  )
}
