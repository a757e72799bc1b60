/** What the model and the real task manager have in common: both take actions, keep a log, and show their state. */
import type { InstanceState } from '../../../src/command-tasks/instances/instance-manager.js'
import type { Task, TaskCompleteMessage, TaskProgressMessage } from '../../../src/protocol/command-tasks.js'
import type { Answer } from '../drawing.js'
import type { LaneAction, ListenerKind } from './actions.js'

/** Something that happened in a step. */
export type LaneLogEntry =
  /** A listener got an event. */
  | { readonly listener: number; readonly event: TaskProgressMessage | TaskCompleteMessage }
  /** A stream ended. */
  | { readonly listener: number; readonly ended: true }
  /** A listener took an action of its script. */
  | { readonly listener: number; readonly did: LaneAction['do']; readonly answer: Answer }
  /** Something went to `onError`. */
  | { readonly reported: string; readonly taskId?: string }

/** A call as its tool sees it. */
export interface SeenCall {
  readonly instanceId: string
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly taskId: string | undefined
  readonly commandId: string | undefined
  readonly isAborted: boolean
  readonly isAnswered: boolean
}

/** Everything observable. */
export interface LaneView {
  /** In the order of submission. */
  readonly tasks: readonly Task[]
  /** The number of live tasks of each lane, by instance. An idle lane has no entry. */
  readonly depths: Readonly<Record<string, number>>
  readonly instances: readonly (readonly [id: string, state: InstanceState])[]
  /** In the order in which the tools got them. */
  readonly calls: readonly SeenCall[]
  /** The number of results that came after their call was aborted. */
  readonly lateResults: number
  /** Whether `dispose` has resolved. */
  readonly isOver: boolean
}

export interface LaneSide {
  /** Takes an action. @throws RangeError for `advance`, which is a method of its own */
  act(action: LaneAction): Answer
  /** Completes what needs no clock. */
  drain(): Promise<void> | void
  /** Moves the time by `ms`, and drains after each timer. */
  advance(ms: number): Promise<void> | void
  /** The number of timers that are set. */
  readonly timers: number
  /** Everything observable. */
  observe(): LaneView
  /** What happened since the last call, in order. Ends the step: the scripts may take SCRIPT_FUEL actions again. */
  takeLog(): LaneLogEntry[]
}

/** What one side does for each kind of action. */
export type LanePerformers = {
  readonly [Kind in Exclude<LaneAction['do'], 'advance'>]: (action: Extract<LaneAction, { do: Kind }>) => unknown
}

export function performLaneAction(performers: LanePerformers, action: LaneAction): unknown {
  if (action.do === 'advance') throw new RangeError('advance takes time: only a command may take it')
  return (performers[action.do] as (action: LaneAction) => unknown)(action)
}

/** The listeners that both sides have from the start, so that every event is in the log. */
export const baseListeners: readonly Extract<LaneAction, { do: 'listen' }>[] = (
  ['handler', 'stream'] satisfies ListenerKind[]
).flatMap((by) => [
  { do: 'listen', to: 'progress', by, script: [] },
  { do: 'listen', to: 'complete', by, script: [] },
])
