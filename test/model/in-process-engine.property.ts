/**
 * The in-process engine: work settles once, starts only if it was not aborted before, and is abandoned only after its grace. An error of
 * an abort listener is reported and has no other effect.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Outcome } from '../../src/engine/engine.js'
import { createInProcessEngine } from '../../src/engine/in-process.js'
import { createManualClock } from '../../src/testing/manual-clock.js'
import { runMicrotasks } from '../../src/testing/microtasks.js'

type Event =
  | { readonly do: 'abort' }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'end'; readonly how: 'returns' | 'throws' }
  | { readonly do: 'turn' }

interface Plan {
  /** The work throws, returns, or returns a promise that settles later. */
  readonly beginning: 'throws' | 'promises' | 'returns'
  readonly graceMs: number
  /** The abort listeners of the work. */
  readonly listeners: readonly ('throws' | 'rejects' | 'quiet')[]
  readonly events: readonly Event[]
}

const event: fc.Arbitrary<Event> = fc.oneof(
  fc.constant({ do: 'abort' as const }),
  fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(0, 1, 5, 10) }),
  fc.record({ do: fc.constant('end' as const), how: fc.constantFrom('returns' as const, 'throws' as const) }),
  fc.constant({ do: 'turn' as const }),
)

const plan: fc.Arbitrary<Plan> = fc.record({
  beginning: fc.constantFrom('throws', 'promises', 'promises', 'promises', 'returns'),
  graceMs: fc.constantFrom(0, 1, 5, 10),
  listeners: fc.array(fc.constantFrom('throws', 'rejects', 'quiet'), { maxLength: 3 }),
  events: fc.array(event, { maxLength: 8 }),
})

export const inProcessEngineProperty = () => fc.asyncProperty(plan, check)

async function check({ beginning, graceMs, listeners, events }: Plan): Promise<void> {
  const clock = createManualClock()
  const settled: Outcome[] = []
  const late: Outcome[] = []
  let begun = 0
  let reported = 0
  let heard = 0
  const ends: Record<'returns' | 'throws', () => void> = { returns: () => undefined, throws: () => undefined }
  const engine = createInProcessEngine({ clock, onError: () => (reported += 1) })
  const run = engine.start({
    id: 'work',
    graceMs,
    onLate: (outcome) => late.push(outcome),
    run({ signal }) {
      begun += 1
      if (beginning === 'throws') throw new Error('at once')
      for (const kind of listeners) {
        signal.addEventListener('abort', (): unknown => {
          heard += 1
          if (kind === 'throws') throw new Error('listener')
          return kind === 'rejects' ? Promise.reject(new Error('listener')) : undefined
        })
      }
      if (beginning === 'returns') return 'value'
      return new Promise((resolve, reject) => {
        ends.returns = () => resolve('value')
        ends.throws = () => reject(new Error('later'))
      })
    },
  })
  void run.settled.then((outcome) => settled.push(outcome))

  // The expected state, updated step by step.
  const expected: { settled?: Outcome['type']; late?: Outcome['type']; begun: boolean; end?: Outcome['type'] } = {
    begun: false,
  }
  let abortedAt: number | undefined
  let wasHeard = false
  const settle = (type: Outcome['type']): void => {
    if (expected.settled === undefined) expected.settled = type
    else if (expected.settled === 'abandoned' && type !== 'abandoned') expected.late = type
  }
  const turn = async (): Promise<void> => {
    await runMicrotasks(6)
    if (!expected.begun && expected.settled !== 'skipped') {
      if (abortedAt !== undefined) settle('skipped')
      else expected.begun = true
      if (expected.begun && beginning !== 'promises') expected.end = beginning === 'throws' ? 'threw' : 'returned'
    }
    if (expected.end !== undefined) settle(expected.end)
    delete expected.end
  }
  for (const each of [...events, { do: 'turn' } as const]) {
    switch (each.do) {
      case 'abort':
        run.abort()
        if (abortedAt === undefined && expected.settled === undefined) {
          abortedAt = clock.now()
          wasHeard = expected.begun
        }
        break
      case 'advance':
        // Microtasks run before timers.
        await turn()
        clock.advance(each.ms)
        if (abortedAt !== undefined && clock.now() >= abortedAt + graceMs) settle('abandoned')
        break
      case 'end':
        ends[each.how]()
        if (expected.begun && beginning === 'promises' && !expected.late && !isEnded(expected)) {
          expected.end = each.how === 'returns' ? 'returned' : 'threw'
        }
        break
      case 'turn':
        break
    }
    await turn()
    assert.deepStrictEqual(
      settled.map(({ type }) => type),
      expected.settled === undefined ? [] : [expected.settled],
    )
    assert.deepStrictEqual(
      late.map(({ type }) => type),
      expected.late === undefined ? [] : [expected.late],
    )
    assert.equal(begun, expected.begun ? 1 : 0)
    assert.equal(heard, wasHeard && beginning === 'promises' ? listeners.length : 0)
    assert.equal(reported, heard === 0 ? 0 : listeners.filter((kind) => kind !== 'quiet').length)
    assert.equal(clock.pending, abortedAt !== undefined && expected.settled === undefined ? 1 : 0)
  }
}

const isEnded = ({ settled }: { settled?: Outcome['type'] }): boolean =>
  settled !== undefined && settled !== 'abandoned'
