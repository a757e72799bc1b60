/** A figure of the benchmark: the lines it prints, and how they are measured. */
import { interleave, type Effort } from './interleave.js'
import { sampleOf, type Sample } from './statistics.js'
import type { Round, SubjectSpec } from './subject.js'

export interface Scale {
  readonly isQuick: boolean
  readonly effort: Effort
  /** The directory of the checkout whose build is measured. */
  readonly checkout: string
  /** The directory of an older checkout, whose build is measured beside it. */
  readonly against?: string
}

/** What the ratio, or the value where there is no reference, has to reach. */
export type Goal = { readonly atMost: number } | { readonly atLeast: number }

/** What is read from a round. */
export interface Quantity {
  readonly unit: string
  readonly better: 'less' | 'more'
  readonly read: (round: Round) => number
}

/** One line of a figure: a subject, and what it is compared with. */
export interface Line {
  readonly name: string
  readonly subject: SubjectSpec
  readonly quantity: Quantity
  readonly reference?: { readonly name: string; readonly subject: SubjectSpec }
  readonly goal?: Goal
}

export interface Figure {
  readonly id: string
  readonly lines: (scale: Scale) => readonly Line[]
  /** Changes the effort for this figure. */
  readonly effort?: (effort: Effort) => Effort
}

/** What was measured of a line in one build. */
export interface Measured {
  readonly value: Sample
  readonly reference?: Sample
  /** The value divided by the reference, round by round. */
  readonly ratio?: Sample
}

/** One line of the summary. */
export interface Row extends Measured {
  readonly figure: string
  readonly line: Line
  /** The same in the older build; `change` is the value divided by the older one, round by round. */
  readonly older?: Measured & { readonly change: Sample }
}

/** Measures a figure: all its subjects take turns, those of an older build among them. */
export async function measure({ id, lines, effort }: Figure, scale: Scale): Promise<readonly Row[]> {
  const all = lines(scale)
  const specs = all.flatMap(({ subject, reference }) => [subject, ...(reference ? [reference.subject] : [])])
  const distinct = [...new Map(specs.map((spec) => [JSON.stringify(spec), spec])).values()]
  const checkouts = [scale.checkout, ...(scale.against === undefined ? [] : [scale.against])]
  const built = distinct.flatMap((spec) => checkouts.map((checkout) => ({ ...spec, checkout })))
  const rounds = await interleave(built, effort?.(scale.effort) ?? scale.effort)
  const byKey = new Map(built.map((spec, at) => [JSON.stringify(spec), rounds[at] ?? []]))

  const read = ({ quantity }: Line, spec: SubjectSpec, checkout: string): number[] =>
    (byKey.get(JSON.stringify({ ...spec, checkout })) ?? []).map((round) => quantity.read(round))
  const measured = (line: Line, checkout: string): Measured => {
    const values = read(line, line.subject, checkout)
    if (line.reference === undefined) return { value: sampleOf(values) }
    const references = read(line, line.reference.subject, checkout)
    return { value: sampleOf(values), reference: sampleOf(references), ratio: sampleOf(divide(values, references)) }
  }
  return all.map((line): Row => {
    const row = { figure: id, line, ...measured(line, scale.checkout) }
    if (scale.against === undefined) return row
    const [newer, older] = [scale.checkout, scale.against].map((checkout) => read(line, line.subject, checkout))
    const change = sampleOf(divide(newer ?? [], older ?? []))
    return { ...row, older: { ...measured(line, scale.against), change } }
  })
}

const divide = (values: readonly number[], by: readonly number[]): number[] =>
  values.map((value, at) => value / (by[at] ?? NaN))

/** Whether a row reaches its goal; undefined where it has none. */
export function reaches({ ratio, value, line: { goal } }: Row): boolean | undefined {
  if (goal === undefined) return undefined
  const { median } = ratio ?? value
  return 'atMost' in goal ? median <= goal.atMost : median >= goal.atLeast
}

/** Whether the reference did better than the subject. */
export function isReferenceBetter({ ratio, line: { quantity } }: Row): boolean {
  if (ratio === undefined) return false
  return quantity.better === 'less' ? ratio.median > 1 : ratio.median < 1
}
