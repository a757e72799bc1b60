/** Arbitraries of the limits of a task manager and of the actions. Their weights are chosen so that most actions have an effect. */
import fc from 'fast-check'
import { JUMPS } from '../../support/jumping-clock.js'
import { nth, record } from '../drawing.js'
import {
  invalidSubmissions,
  laneInstances,
  playedAnswers,
  type InvalidSubmission,
  type LaneAction,
  type LaneSettings,
  type PlannedCommand,
  type PlayedAnswer,
  type Script,
  type TaskTarget,
} from './actions.js'

/** Limits that are small enough to be reached. */
export const laneSettings: fc.Arbitrary<LaneSettings> = fc.record({
  commandTimeout: fc.constantFrom(100, 200),
  maxQueueSize: fc.constantFrom(3, 3, 5, 5, 1, 0),
  abortGraceMs: fc.constantFrom(50, 50, 0),
  retentionMs: fc.constantFrom(1000, 5000, 100, 0),
  maxRetained: fc.constantFrom(100, 100, 3, 1, 0),
})

const statuses = ['queued', 'running', 'completed', 'failed', 'cancelled'] as const

const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 1 })

const command = record<PlannedCommand>({
  tool: fc.constantFrom('waits' as const, 'waits' as const, 'stops' as const, 'returns' as const),
  timeout: optional(fc.constantFrom(20, 50, 500)),
})

const task: fc.Arbitrary<TaskTarget> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ of: fc.constant('live' as const), nth }) },
  { weight: 2, arbitrary: fc.record({ of: fc.constant('all' as const), nth }) },
  { weight: 1, arbitrary: fc.record({ id: fc.constantFrom('task_0_1', '__proto__', '') }) },
)

const progress = record<{ progress: number; total?: number; message?: string }>({
  progress: fc.constantFrom(0, 1, 0.5, 7),
  total: optional(fc.constantFrom(1, 7)),
  message: optional(fc.constant('half way')),
})

/** One kind of action, and how often it is drawn relative to the others. */
interface Weighted {
  readonly weight: number
  readonly arbitrary: fc.Arbitrary<LaneAction>
}

const instance = fc.constantFrom(...laneInstances.map(({ id }) => id))
const worker = fc.constantFrom(...laneInstances.filter(({ kind }) => kind === 'websocket').map(({ id }) => id))

/** The actions of commands; with `isScript` those of scripts. */
export function laneActions({ isScript = false }: { readonly isScript?: boolean } = {}): fc.Arbitrary<LaneAction> {
  const one = <A extends LaneAction>(weight: number, shape: { [K in keyof A]-?: fc.Arbitrary<A[K] | undefined> }) => ({
    weight,
    arbitrary: record<A>(shape),
  })
  type Of<Kind extends LaneAction['do']> = Extract<LaneAction, { do: Kind }>
  const is = <Kind extends string>(kind: Kind) => fc.constant(kind)

  const everywhere: Weighted[] = [
    one<Of<'submit'>>(12, {
      do: is('submit'),
      to: fc.oneof({ weight: 6, arbitrary: optional(instance) }, { weight: 1, arbitrary: fc.constant('unknown') }),
      commands: fc.array(command, { minLength: 1, maxLength: 3 }),
    }),
    one<Of<'cancel'>>(5, { do: is('cancel'), task }),
    one<Of<'answer'>>(12, {
      do: is('answer'),
      call: nth,
      how: fc.constantFrom('text' as const, 'text' as const, 'text' as const, ...keysOf(playedAnswers)),
    }),
    one<Of<'report'>>(2, { do: is('report'), call: nth, progress }),
    one<Of<'connect'>>(4, { do: is('connect'), instance }),
    one<Of<'disconnect'>>(1, { do: is('disconnect'), instance }),
    one<Of<'lose'>>(1, { do: is('lose'), instance, connection: nth }),
    one<Of<'dropTasks'>>(1, { do: is('dropTasks'), instance }),
    one<Of<'unlisten'>>(isScript ? 3 : 1, { do: is('unlisten'), listener: nth }),
    one<Of<'prune'>>(1, { do: is('prune'), maxAge: optional(fc.constantFrom(0, 50, 1000, -1)) }),
    one<Of<'look'>>(1, {
      do: is('look'),
      task,
      instance: optional(instance),
      status: optional(fc.constantFrom(...statuses)),
    }),
    one<Of<'listen'>>(isScript ? 1 : 3, {
      do: is('listen'),
      to: fc.constantFrom('progress' as const, 'complete' as const),
      by: fc.constantFrom('handler' as const, 'stream' as const),
      script: isScript ? fc.constant([]) : scripts(),
    }),
    one<Of<'open'>>(3, { do: is('open'), instance: worker }),
    one<Of<'takeOver'>>(1, { do: is('takeOver'), instance: worker }),
  ]
  if (isScript) {
    // Rare: after it, other actions have little effect.
    const rare: Weighted[] = [
      { weight: 3, arbitrary: fc.constant<LaneAction>({ do: 'throw' }) },
      { weight: 1, arbitrary: fc.constant<LaneAction>({ do: 'dispose' }) },
    ]
    return fc.oneof(...everywhere, ...rare)
  }
  return fc.oneof(
    ...everywhere,
    one<Of<'submitInvalid'>>(1, { do: is('submitInvalid'), input: fc.constantFrom(...keysOf(invalidSubmissions)) }),
    one<Of<'jump'>>(1, { do: is('jump'), ms: fc.constantFrom(...JUMPS) }),
    one<Of<'advance'>>(7, { do: is('advance'), ms: fc.constantFrom(0, 10, 50, 50, 120, 250, 1000, 6000) }),
  )
}

function scripts(): fc.Arbitrary<Script> {
  const any = fc.array(laneActions({ isScript: true }), { minLength: 1, maxLength: 3 })
  // A host that reconnects a lost instance: this sequence is rarely drawn otherwise.
  const renewal = instance.map((id): Script => [
    { do: 'disconnect', instance: id },
    { do: 'connect', instance: id },
    { do: 'submit', to: id, commands: [{ tool: 'waits' }] },
  ])
  return fc.oneof({ weight: 9, arbitrary: any as fc.Arbitrary<Script> }, { weight: 1, arbitrary: renewal })
}

const keysOf = <K extends InvalidSubmission | PlayedAnswer>(of: Readonly<Record<K, unknown>>): K[] =>
  Object.keys(of) as K[]
