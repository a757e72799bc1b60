/** A figure of the benchmark: what it measures, and the lines it prints. */
import type { Effort } from './interleave.js'
import type { Sample } from './statistics.js'

/** How far to go. */
export interface Scale {
  readonly isQuick: boolean
  readonly effort: Effort
}

/** What a ratio is to reach. */
export type Goal = { readonly atMost: number } | { readonly atLeast: number }

/** One line of the summary. */
export interface Row {
  readonly figure: string
  readonly name: string
  readonly value: number
  readonly unit: string
  /** The value as a ratio to its reference in the same rounds; absent where there is none. */
  readonly ratio?: Sample
  readonly reference?: string
  readonly goal?: Goal
  /** What more is to be said. */
  readonly note?: string
}

/** Points of a line in the picture. */
export interface Series {
  readonly name: string
  readonly points: readonly (readonly [number, number])[]
}

export interface Figure {
  readonly id: string
  readonly title: string
  measure(scale: Scale): Promise<readonly Row[]>
}

/** Whether a row reaches its goal: by its ratio, or by its value where there is nothing to compare with. */
export function reaches({ ratio, value, goal }: Row): boolean | undefined {
  if (goal === undefined) return undefined
  const got = ratio?.median ?? value
  return 'atMost' in goal ? got <= goal.atMost : got >= goal.atLeast
}
