/** The model of an `AbortController`: its listeners, in order, and what an abort calls. */

export interface ModelledSignal {
  readonly name: string
  isAborted: boolean
  /** What its reason says in words. */
  why: string | undefined
  /** `of`: the task that a listener of the registry cancels. */
  listeners: { readonly of?: object; readonly call: (reason: string) => void }[]
}

export const makeSignal = (name: string): ModelledSignal => ({
  name,
  isAborted: false,
  why: undefined,
  listeners: [],
})

/** Calls the listeners that were not removed by a listener before them. A second abort does nothing. */
export function abortSignal(signal: ModelledSignal, reason: string, why?: string): void {
  if (signal.isAborted) return
  signal.isAborted = true
  signal.why = why
  for (const listener of [...signal.listeners]) {
    if (signal.listeners.includes(listener)) listener.call(reason)
  }
}

export function stopListening(signal: ModelledSignal, of: object): void {
  signal.listeners = signal.listeners.filter((listener) => listener.of !== of)
}
