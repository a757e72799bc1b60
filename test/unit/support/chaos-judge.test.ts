/** The judge of chaos finds each kind of what must not be, and nothing where all is well. */
import { describe, expect, it } from 'vitest'
import type { Fault } from '../../support/chaos/faults.js'
import { judge, type Deed, type Work } from '../../support/chaos/judge.js'

const deed = (from: number, to: number | undefined, more: Partial<Deed> = {}): Deed => {
  return { attempt: 1, from, to, pid: 1, ...more }
}

const work = (name: string, more: Partial<Work> = {}): Work => ({
  name,
  lane: 'lane',
  sentAt: 0,
  answeredAt: 10,
  deeds: [deed(20, 30)],
  ends: [{ status: 'completed', at: 40, attempt: 1 }],
  ...more,
})

const fault = (kind: Fault['kind'], at: number, ms = 0, pid = 1): Fault => {
  return { kind, target: 'worker', index: 0, pid, at, ms }
}

const findings = (works: readonly Work[], faults: readonly Fault[] = []) => {
  const { takeovers: _, ...found } = judge(works, faults, [])
  return found
}

const NOTHING = {
  lost: [],
  twice: [],
  outOfOrder: [],
  twoAtOnce: [],
  besidePaused: [],
  begunAnyway: [],
  forNothing: [],
}

describe('the judge of chaos', () => {
  it('finds nothing where all is well', () => {
    const { answeredAt: _, ...notAnswered } = work('not answered', { deeds: [], ends: [] })
    const failed = { status: 'failed', code: 'INTERRUPTED', at: 60, attempt: 2 }
    const works = [
      work('a'),
      work('b', { sentAt: 11, answeredAt: 12, deeds: [deed(30, 40)] }),
      work('refused', { isRefused: true, deeds: [], ends: [] }),
      notAnswered,
      work('whose lines are not known', { lane: 'y', lineCount: 2 }),
      work('interrupted', { lane: 'x', ends: [failed], deeds: [deed(1, undefined), deed(50, 60, { attempt: 2 })] }),
    ]
    expect(findings(works, [fault('kill', 45)])).toEqual(NOTHING)
  })

  it.each<[name: string, more: Partial<Work>]>([
    ['has no end', { ends: [] }],
    ['has failed with TIMEOUT', { ends: [{ status: 'failed', code: 'TIMEOUT', at: 1, attempt: 1 }] }],
    ['has completed, and attempt 1 has not ended', { deeds: [deed(20, undefined)] }],
    ['has 1 of 2 lines', { lineCount: 2, ends: [{ status: 'completed', at: 40, attempt: 1, lines: ['1.0'] }] }],
  ])('finds what is lost: it %s', (text, more) => {
    expect(findings([work('a', more)])).toEqual({ ...NOTHING, lost: [expect.stringContaining(text) as string] })
  })

  it.each<[name: string, more: Partial<Work>]>([
    ['has run twice as attempt 1', { deeds: [deed(20, 30), deed(40, 50)] }],
    ['was refused, and has run', { isRefused: true, ends: [] }],
    [
      'has ended as completed 1 undefined, then as failed 1 X',
      {
        ends: [
          { status: 'completed', at: 40, attempt: 1 },
          { status: 'failed', code: 'X', at: 50, attempt: 1 },
        ],
      },
    ],
  ])('finds what is there twice: it %s', (text, more) => {
    const { twice } = findings([work('a', more)], [fault('cut', 35)])
    expect(twice).toEqual([`a ${text}`])
  })

  it('finds what is out of order: of a lane, and of what a run writes', () => {
    const later = work('later', { sentAt: 11, answeredAt: 12, deeds: [deed(15, 16)] })
    expect(findings([work('a'), later])).toEqual({ ...NOTHING, outOfOrder: ['later has overtaken a'] })
    const lines = ['1.1', '1.0']
    const mixed = work('a', { lineCount: 2, ends: [{ status: 'completed', at: 40, attempt: 1, lines }] })
    expect(findings([mixed])).toEqual({ ...NOTHING, outOfOrder: ['a has written 1.0 after 1.1'] })
  })

  it('does not compare what was sent before the other one was answered', () => {
    expect(findings([work('a'), work('b', { sentAt: 9, deeds: [deed(15, 16)] })])).toEqual(NOTHING)
  })

  it('tells what began although its launch had failed apart', () => {
    const begun = work('a', { ends: [{ status: 'failed', code: 'START_FAILED', at: 15, attempt: 1 }] })
    expect(findings([begun], [fault('redis', 12)])).toEqual({ ...NOTHING, begunAnyway: ['a'] })
  })

  it('finds two at once, and tells those beside one that was paused apart', () => {
    const works = [work('a'), work('b', { deeds: [deed(25, 35, { pid: 2 })] })]
    const text = 'a (attempt 1) and b (attempt 1) for 5 ms'
    expect(findings(works)).toEqual({ ...NOTHING, twoAtOnce: [text] })
    expect(findings(works, [fault('pause', 21, 100, 2)])).toEqual({ ...NOTHING, twoAtOnce: [text] })
    expect(findings(works, [fault('pause', 21, 100, 1)])).toEqual({ ...NOTHING, besidePaused: [text] })
  })

  it('tells how long takeovers took, and what was given up for nothing', () => {
    const works = [work('a', { deeds: [deed(20, undefined), deed(125, 130, { attempt: 2 })] })]
    const more = { ends: [{ status: 'completed', at: 140, attempt: 2 }] }
    const [run] = works.map((one) => ({ ...one, ...more }))
    const all = run === undefined ? [] : [run]
    expect(judge(all, [fault('kill', 25)], []).takeovers).toEqual([{ kind: 'kill', ms: 100 }])
    expect(judge(all, [], [])).toMatchObject({ takeovers: [], forNothing: ['a'] })
  })
})
