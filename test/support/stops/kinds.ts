/** The kinds of tasks of the hosts of `npm run stops`, and what the next process must do with each. */

/** What `manager.recovered` of the next process says about a task. */
export type Found = 'adopted' | 'queued' | 'retried' | 'interrupted'

/** How a task that was running goes on after a kill. */
interface Kind {
  /** What the next process finds. */
  readonly found: Found
  /** Whether its program may run on between the two processes. */
  readonly survives?: true
  readonly durable?: true
}

export const KINDS = {
  /** A function that rejects when it is aborted. */
  plain: { found: 'interrupted' },
  /** A function that returns its result within its grace. */
  polite: { found: 'interrupted' },
  /** A function that ignores that it is aborted. */
  stubborn: { found: 'interrupted' },
  repeated: { found: 'retried' },
  /** A function that asks, and is run again. */
  asking: { found: 'retried' },
  /** A durable run that sleeps between two steps. */
  sleeping: { found: 'retried', durable: true },
  /** A durable run whose steps work. */
  stepping: { found: 'retried', durable: true },
  /** A durable run that asks. */
  durablyAsking: { found: 'retried', durable: true },
  program: { found: 'interrupted' },
  repeatedProgram: { found: 'retried' },
  survivor: { found: 'adopted', survives: true },
} as const satisfies Readonly<Record<string, Kind>>

export type KindName = keyof typeof KINDS

export const kindOf = (name: unknown): Kind => KINDS[name as KindName]
