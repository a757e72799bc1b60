/** An instance that a test plays: the test answers the calls of its tools, and opens and loses its connection. */
import type { InstanceTiming } from '../../../machines/instance.js'
import { isolateAbortListeners } from '../../../src/isolation/isolated-signal.js'
import type { TaskProgress } from '../../../machines/records.js'
import type { Instance, InstanceConnection, ToolCall } from '../../../src/command-tasks/instances/instance.js'
import type { ToolCallResult } from '../../../src/protocol/tool-result.js'
import type { LaneInstance } from './actions.js'

/** A call of a tool. */
export interface PlayedCall {
  readonly instanceId: string
  readonly call: ToolCall
  /** Whether an answer was given. It may not have settled the call yet. */
  isAnswered: boolean
  resolve(result: ToolCallResult): void
  reject(error: Error): void
  report(progress: TaskProgress): void
}

export interface PlayedInstance {
  readonly instance: Instance
  /** Loses the connection. */
  lose(reason: string): void
  /** Opens the connection of a `websocket` instance. */
  open(): void
  /** Replaces the connection by another. */
  takeOver(): void
}

export interface PlayedInstanceListeners {
  readonly onCall: (call: PlayedCall) => void
  readonly onAbort: (call: PlayedCall) => void
  /** Called when a connection is gone: its calls fail at once. */
  readonly failCalls: (calls: readonly PlayedCall[]) => void
}

export function createPlayedInstance(
  { id, kind, connectTimeoutMs }: LaneInstance,
  { onCall, onAbort, failCalls }: PlayedInstanceListeners,
): PlayedInstance {
  const calls: PlayedCall[] = []
  const lost: ((reason: string) => void)[] = []
  const events: ((event: Parameters<Parameters<InstanceConnection['onEvent']>[0]>[0]) => void)[] = []
  const timing: InstanceTiming = connectTimeoutMs === undefined ? {} : { connectTimeoutMs }
  const send = (event: 'connection.opened' | 'connection.takenOver'): void =>
    events.forEach((listener) => listener(event))

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
    lose: (reason) => lost.forEach((listener) => listener(reason)),
    open: () => send('connection.opened'),
    takeOver: () => send('connection.takenOver'),
  }
}
