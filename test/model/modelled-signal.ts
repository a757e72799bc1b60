/** An `AbortController` as the model sees it: who listens, in which order, and what an abort calls. */

export interface ModelledSignal {
  readonly name: string
  isAborted: boolean
  /** `of` is the task that a listener cancels, if it is the registry's own. */
  listeners: { readonly of?: object; readonly call: (reason: string) => void }[]
}

export const makeSignal = (name: string): ModelledSignal => ({
  name,
  isAborted: false,
  listeners: [],
})

/** Calls who listens, unless one of those called before took it back. Aborting again does nothing. */
export function abortSignal(signal: ModelledSignal, reason: string): void {
  if (signal.isAborted) return
  signal.isAborted = true
  for (const listener of [...signal.listeners]) {
    if (signal.listeners.includes(listener)) listener.call(reason)
  }
}

export function stopListening(signal: ModelledSignal, of: object): void {
  signal.listeners = signal.listeners.filter((listener) => listener.of !== of)
}
