/** The chart of a state machine, with positions and sizes in px. The build generates it from machines/. */
export interface MachineChart {
  readonly id: string
  readonly description: string
  readonly width: number
  readonly height: number
  /** Each state comes before the states inside it. */
  readonly states: readonly ChartNode[]
  readonly edges: readonly ChartEdge[]
}

/** The smallest scale at which a drawing is easy to read. */
export const READABLE = 0.68

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Box extends Point {
  readonly width: number
  readonly height: number
}

/**
 * A state, or another node of the drawing. `start` is the dot that points at the initial state, `any` is a box that stands for all states, and `group`
 * is a frame around states with the same transitions.
 */
export interface ChartNode extends Box {
  /** The names of the state and of the states around it, joined by dots. A node that is not a state has the path of the state that contains it. */
  readonly path: string
  readonly name: string
  readonly kind: 'atomic' | 'compound' | 'final' | 'start' | 'any' | 'group'
  readonly description: string
}

/** A line for all transitions from one state, or from each state of a group, to another state. It has a label for each event. */
export interface ChartEdge {
  /** The paths of the states at the start of the line; empty if the line starts at another node. */
  readonly from: readonly string[]
  readonly to: string
  readonly points: readonly Point[]
  readonly labels: readonly ChartLabel[]
}

/** The event and the guard of a transition, at its line. */
export interface ChartLabel extends Box {
  readonly text: string
  readonly description: string
}
