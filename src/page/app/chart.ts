/** A machine with its layout, in px. The build makes it from machines/. */
export interface MachineChart {
  readonly id: string
  readonly description: string
  readonly width: number
  readonly height: number
  /** Parents before children. */
  readonly states: readonly ChartNode[]
  readonly edges: readonly ChartEdge[]
}

/** A drawing that is scaled down further is hard to read. */
export const READABLE = 0.7

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Box extends Point {
  readonly width: number
  readonly height: number
}

/**
 * A state or a mark. `start` points at the initial state, `any` stands for all states, and `group` is a box round states with the same exits.
 */
export interface ChartNode extends Box {
  /** The path below the machine, dotted. A mark has the path of the state that contains it. */
  readonly path: string
  readonly name: string
  readonly kind: 'atomic' | 'compound' | 'final' | 'start' | 'any' | 'group'
  readonly description: string
}

/** The transitions from one state, or from each state of a group, to another state: one line with a label for each event. */
export interface ChartEdge {
  /** The paths of the states; empty for a line from another mark. */
  readonly from: readonly string[]
  readonly to: string
  readonly points: readonly Point[]
  readonly labels: readonly ChartLabel[]
}

/** The event and the guard of a transition. */
export interface ChartLabel extends Box {
  readonly text: string
  readonly description: string
}
