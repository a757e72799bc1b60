/** The calls that an instance has in flight: each can be aborted alone, and all end with the instance. */
import { isolateAbortListeners } from '../callbacks/isolated-signal.js'
import { InstanceError } from '../errors.js'
import type { ToolCall } from './instance.js'
import type { ToolCallResult } from '../protocol/tool-result.js'

/** Whether a call is still wanted: it is given up with its own signal, or when its instance ends. */
export interface CallAbort {
  readonly aborted: boolean
  readonly reason: unknown
  /** The same as a signal, which is made when it is first asked for: many tools never look at it, and it is what costs most of a call. */
  readonly signal: AbortSignal
}

export interface CallsInFlight {
  /** Does a call. It settles when the work does: a lane must not start the next while a tool is still at it. */
  run(call: ToolCall, work: (abort: CallAbort) => Promise<ToolCallResult>): Promise<ToolCallResult>
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
  const running = new Map<OneCall, Promise<unknown>>()
  let endedBy: InstanceError | undefined

  async function perform(one: OneCall, work: (abort: CallAbort) => Promise<ToolCallResult>): Promise<ToolCallResult> {
    try {
      return await work(one)
    } catch (error) {
      // What a tool throws because its instance has gone is not the tool's failure.
      throw one.aborted && one.reason === endedBy ? endedBy : error
    } finally {
      one.release()
    }
  }

  return {
    run: (call, work) => {
      if (endedBy !== undefined) return Promise.reject(endedBy)
      if (call.signal.aborted) return Promise.reject(toError(call.signal.reason))
      const one = new OneCall(call.signal, onError)
      const settled = perform(one, work).finally(() => running.delete(one))
      running.set(one, settled)
      return settled
    },
    end: (reason) => {
      endedBy ??= new InstanceError('INSTANCE_DISCONNECTED', instanceId, `Instance ${instanceId} is gone: ${reason}`)
      for (const one of [...running.keys()]) one.end(endedBy)
    },
    settled: async () => {
      await Promise.allSettled(running.values())
    },
  }
}

class OneCall implements CallAbort {
  readonly #asked: AbortSignal
  readonly #onError: (error: unknown) => void
  #endedBy: InstanceError | undefined
  #controller: AbortController | undefined
  /** It has ended, and nobody had given it up. */
  #isOver = false

  constructor(asked: AbortSignal, onError: (error: unknown) => void) {
    this.#asked = asked
    this.#onError = onError
  }

  get aborted(): boolean {
    return !this.#isOver && (this.#endedBy !== undefined || this.#asked.aborted)
  }

  get reason(): unknown {
    return this.#endedBy ?? (this.#asked.reason as unknown)
  }

  get signal(): AbortSignal {
    if (this.#controller !== undefined) return this.#controller.signal
    this.#controller = new AbortController()
    const { signal } = this.#controller
    isolateAbortListeners(signal, this.#onError)
    if (this.aborted) this.#controller.abort(this.reason)
    else if (!this.#isOver) this.#asked.addEventListener('abort', this.#abort, { once: true })
    return signal
  }

  end(reason: InstanceError): void {
    if (this.aborted || this.#isOver) return
    this.#endedBy = reason
    this.#controller?.abort(reason)
  }

  release(): void {
    this.#isOver = !this.aborted
    if (this.#controller !== undefined) this.#asked.removeEventListener('abort', this.#abort)
  }

  readonly #abort = (): void => this.#controller?.abort(this.#asked.reason)
}

/** The reason of an abort, as something to throw. */
export function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new DOMException(String(reason), 'AbortError')
}
