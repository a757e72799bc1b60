/** The calls that an instance has in flight: each can be aborted alone, and all end with the instance. */
import { isolateAbortListeners } from '../isolated-signal.js'
import { InstanceError } from '../errors.js'
import type { ToolCall } from './instance.js'
import type { ToolCallResult } from '../protocol/tool-result.js'

export interface CallsInFlight {
  /**
   * Does a call. Its signal aborts with the call's own, and when the instance ends. It settles when the work does: a lane must not start
   * the next while a tool is still at it.
   */
  run(call: ToolCall, work: (signal: AbortSignal) => Promise<ToolCallResult>): Promise<ToolCallResult>
  /** Aborts all calls, and refuses those that come later. */
  end(reason: string): void
  /** Resolves when every call that is in flight now has settled. */
  settled(): Promise<void>
}

export function createCallsInFlight(
  instanceId: string,
  onError: (error: unknown) => void = (error) =>
    console.error(`[agent-tasks] abort listener of instance ${instanceId}:`, error),
): CallsInFlight {
  const running = new Map<AbortController, Promise<unknown>>()
  let endedBy: InstanceError | undefined

  async function settle(work: Promise<ToolCallResult>, signal: AbortSignal): Promise<ToolCallResult> {
    try {
      return await work
    } catch (error) {
      // What a tool throws because its instance has gone is not the tool's failure.
      throw signal.aborted && signal.reason === endedBy ? endedBy : error
    }
  }

  return {
    run: (call, work) => {
      if (endedBy !== undefined) return Promise.reject(endedBy)
      if (call.signal.aborted) return Promise.reject(toError(call.signal.reason))
      const controller = new AbortController()
      isolateAbortListeners(controller.signal, onError)
      const abort = (): void => controller.abort(call.signal.reason)
      call.signal.addEventListener('abort', abort, { once: true })
      const settled = settle(
        new Promise<ToolCallResult>((resolve) => resolve(work(controller.signal))),
        controller.signal,
      ).finally(() => {
        call.signal.removeEventListener('abort', abort)
        running.delete(controller)
      })
      running.set(controller, settled)
      return settled
    },
    end: (reason) => {
      endedBy ??= new InstanceError('INSTANCE_DISCONNECTED', instanceId, `Instance ${instanceId} is gone: ${reason}`)
      for (const controller of [...running.keys()]) controller.abort(endedBy)
    },
    settled: async () => {
      await Promise.allSettled(running.values())
    },
  }
}

/** The reason of an abort, as something to throw. */
export function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new DOMException(String(reason), 'AbortError')
}
