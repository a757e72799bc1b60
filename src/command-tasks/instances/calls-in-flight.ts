/** Keeps track of the running calls of an instance. Each call can be aborted, and the end of the instance aborts all of them. */
import { callContext } from '../../isolation/call-context.js'
import { IsolatedController } from '../../isolation/isolated-controller.js'
import { InstanceError } from '../../errors.js'
import type { ToolCallResult } from '../../protocol/tool-result.js'
import type { ToolCall } from './instance.js'

/** Shows whether a call was aborted, either by its caller or because its instance has ended. */
export interface CallAbort {
  readonly aborted: boolean
  /** A signal with the same state. It is created on first use. */
  readonly signal: AbortSignal
}

export interface CallsInFlight {
  /** Performs a call. The promise settles only when `work` does, even after an abort: the next call must not start while a tool is still running. */
  run(call: ToolCall, work: (abort: CallAbort) => Promise<ToolCallResult>): Promise<ToolCallResult>
  /** Aborts all running calls. Later calls are refused with the same error. */
  end(reason: string): void
  /** Resolves when the calls that are running now have settled. */
  settled(): Promise<void>
}

export function createCallsInFlight(
  instanceId: string,
  onError: (error: unknown) => void = (error) =>
    console.error(`[agent-tasks] abort listener of instance ${instanceId}:`, error),
): CallsInFlight {
  const running = new Map<CallInFlight, Promise<unknown>>()
  let endedBy: InstanceError | undefined

  async function perform(
    one: CallInFlight,
    work: (abort: CallAbort) => Promise<ToolCallResult>,
  ): Promise<ToolCallResult> {
    try {
      return await work(one)
    } catch (error) {
      // If the end of the instance has aborted the call, the exception is not a failure of the tool.
      throw one.isAbortedBy(endedBy) ? endedBy : error
    } finally {
      one.release()
      running.delete(one)
    }
  }

  return {
    run: (call, work) => {
      if (endedBy !== undefined) return Promise.reject(endedBy)
      if (isGivenUp(call)) return Promise.reject(toError(call.signal.reason))
      const one = new CallInFlight(call, onError)
      const settled = perform(one, work)
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

class CallInFlight implements CallAbort {
  readonly #call: ToolCall
  readonly #abort: IsolatedController
  readonly #context = callContext()
  #isListening = false
  #hasEnded = false

  constructor(call: ToolCall, onError: (error: unknown) => void) {
    this.#call = call
    this.#abort = new IsolatedController(onError)
  }

  get aborted(): boolean {
    if (!this.#hasEnded && !this.#abort.aborted && isGivenUp(this.#call)) this.#follow()
    return this.#abort.aborted
  }

  get signal(): AbortSignal {
    if (!this.aborted && !this.#hasEnded && !this.#isListening) {
      this.#isListening = true
      this.#call.signal.addEventListener('abort', this.#follow, { once: true })
    }
    return this.#abort.signal
  }

  isAbortedBy(reason: InstanceError | undefined): boolean {
    return this.aborted && this.#abort.reason === reason
  }

  /** Aborts the call, because its instance has ended. */
  end(reason: InstanceError): void {
    if (this.aborted || this.#hasEnded) return
    this.#context.runInAsyncScope(() => this.#abort.abort(reason))
  }

  /** Marks the call as ended. From now on, its signal does not abort any more. */
  release(): void {
    this.#hasEnded = !this.aborted
    if (this.#isListening) this.#call.signal.removeEventListener('abort', this.#follow)
  }

  readonly #follow = (): void => this.#abort.abort(this.#call.signal.reason)
}

const isGivenUp = (call: ToolCall): boolean => call.isAborted?.() ?? call.signal.aborted

export function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new DOMException(String(reason), 'AbortError')
}
