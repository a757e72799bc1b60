/** An instance whose tools a test plays: it decides when and how each call ends, and when the connection comes and goes. */
import type { InstanceTiming } from '../../machines/instance.js'
import { isolateAbortListeners } from '../callbacks/isolated-signal.js'
import type { TaskProgress } from '../../machines/records.js'
import type { Instance, InstanceConnection, ToolCall } from '../instances/instance.js'
import type { ToolCallResult } from '../protocol/tool-result.js'
import type { LaneInstance } from './lane-actions.js'

/** A call as it came to the tool. */
export interface PlayedCall {
  readonly instanceId: string
  readonly call: ToolCall
  /** Whether an answer was given, which may still be on its way. */
  isAnswered: boolean
  resolve(result: ToolCallResult): void
  reject(error: Error): void
  report(progress: TaskProgress): void
}

export interface PlayedInstance {
  readonly instance: Instance
  /** The connection ends by itself. */
  lose(reason: string): void
  /** The connection of a `websocket` instance is there. */
  open(): void
  /** Another connection takes the place of the present one. */
  takeOver(): void
}

export interface PlayedInstanceListeners {
  readonly onCall: (call: PlayedCall) => void
  readonly onAbort: (call: PlayedCall) => void
  /** The connection is gone: what was called over it fails at once. */
  readonly failCalls: (calls: readonly PlayedCall[]) => void
}

/** Makes an instance that does nothing by itself. */
export function createPlayedInstance(
  { id, kind, connectTimeoutMs }: LaneInstance,
  { onCall, onAbort, failCalls }: PlayedInstanceListeners,
): PlayedInstance {
  const calls: PlayedCall[] = []
  const lost: ((reason: string) => void)[] = []
  const events: ((event: Parameters<Parameters<InstanceConnection['onEvent']>[0]>[0]) => void)[] = []
  const timing: InstanceTiming = connectTimeoutMs === undefined ? {} : { connectTimeoutMs }
  const send = (event: 'connection.opened' | 'connection.takenOver'): void => events.forEach((tell) => tell(event))

  function callTool(call: ToolCall): Promise<ToolCallResult> {
    isolateAbortListeners(call.signal, () => undefined)
    return new Promise((resolve, reject) => {
      const played: PlayedCall = {
        instanceId: id,
        call,
        isAnswered: false,
        resolve,
        reject,
        report: (progress) => call.onProgress(progress),
      }
      calls.push(played)
      call.signal.addEventListener('abort', () => onAbort(played))
      onCall(played)
    })
  }

  return {
    instance: {
      id,
      kind,
      ...(kind === 'websocket' && {
        passesInstanceId: true,
        connection: {
          timing,
          onEvent: (listener) => void events.push(listener),
          failCalls: () => failCalls(calls),
        },
      }),
      listTools: () => Promise.resolve([{ name: 'waits' }, { name: 'stops' }, { name: 'returns' }]),
      callTool,
      onLost: (listener) => void lost.push(listener),
      close: () => Promise.resolve(),
    },
    lose: (reason) => lost.forEach((tell) => tell(reason)),
    open: () => send('connection.opened'),
    takeOver: () => send('connection.takenOver'),
  }
}
