/** What the model of the lanes and the real thing have in common: both take actions, keep a log and can be looked at. */
import type { InstanceState } from '../../../src/instances/instance-manager.js'
import type { Task, TaskCompleteMessage, TaskProgressMessage } from '../../../src/protocol/command-tasks.js'
import type { Answer, LaneAction, ListenerKind } from './actions.js'

/** Something that happened while actions were taken. */
export type LaneLogEntry =
  /** A listener was told. */
  | { readonly listener: number; readonly told: TaskProgressMessage | TaskCompleteMessage }
  /** A stream ended. */
  | { readonly listener: number; readonly ended: true }
  /** A listener took an action of its script. */
  | { readonly listener: number; readonly did: LaneAction['do']; readonly answer: Answer }
  /** Something went to `onError`. */
  | { readonly reported: string; readonly taskId?: string }

/** A call as the tool saw it. */
export interface SeenCall {
  /** The instance that was asked. */
  readonly instanceId: string
  /** The tool that was called. */
  readonly name: string
  /** What it was called with. */
  readonly arguments: Readonly<Record<string, unknown>>
  /** The task that it is for. */
  readonly taskId: string | undefined
  /** The command that it is for. */
  readonly commandId: string | undefined
  /** Whether its signal was aborted. */
  readonly isAborted: boolean
  /** Whether the tool has returned or thrown. */
  readonly isAnswered: boolean
}

/** Everything that can be seen from outside. */
export interface LaneView {
  /** In the order of submission. */
  readonly tasks: readonly Task[]
  /** How many tasks each lane has that have not ended, by instance; a lane that has nothing to do has no entry. */
  readonly depths: Readonly<Record<string, number>>
  /** Every instance, with the state of its chart. */
  readonly instances: readonly (readonly [id: string, state: InstanceState])[]
  /** Every call, in the order in which the tools saw them. */
  readonly calls: readonly SeenCall[]
  /** Results that came after their call had been given up. */
  readonly lateResults: number
  /** Whether `dispose` was called and has resolved. */
  readonly isOver: boolean
}

export interface LaneSide {
  /** Takes an action and answers it at once. @throws RangeError for `advance`, which takes time */
  act(action: LaneAction): Answer
  /** Lets everything come in that is under way without the clock. */
  drain(): Promise<void> | void
  /** Moves the time by `ms`, one timer after the other, and drains after each. */
  advance(ms: number): Promise<void> | void
  /** How many timers are set. */
  readonly timers: number
  /** Everything that can be seen from outside. */
  observe(): LaneView
  /** What happened since the last call, in order: ends a step, with which the scripts of listeners may act again. */
  takeLog(): LaneLogEntry[]
}

/** How one side takes each kind of action. */
export type LanePerformers = {
  readonly [Kind in Exclude<LaneAction['do'], 'advance'>]: (action: Extract<LaneAction, { do: Kind }>) => unknown
}

export function performLaneAction(performers: LanePerformers, action: LaneAction): unknown {
  if (action.do === 'advance') throw new RangeError('advance takes time: only a command may do it')
  return (performers[action.do] as (action: LaneAction) => unknown)(action)
}

/** What every side listens to from the beginning, so that everything that is told is in the log. */
export const baseListeners: readonly Extract<LaneAction, { do: 'listen' }>[] = (
  ['handler', 'stream'] satisfies ListenerKind[]
).flatMap((by) => [
  { do: 'listen', to: 'progress', by, script: [] },
  { do: 'listen', to: 'complete', by, script: [] },
])
