/** A way to a viewer. It tells when it opens and when it is down; what it cannot take now, it is not given. */
export interface Transport {
  /** `down` when it was lost, or an attempt to open it failed, until it is open again. */
  readonly state: 'opening' | 'open' | 'down'
  /** Whether a message can be given to it now: it is open, and has not too much to send already. */
  readonly canTake: boolean
  /** Whether everything it was given has left this process. */
  readonly isDrained: boolean
  /** Takes one message, as JSON text. Does not throw. */
  send(text: string): void
  /** Ends it; resolves when nothing of it is left. */
  close(): Promise<void>
}

/** What a transport reports. It does not call back after `close`. */
export interface TransportEvents {
  /** Open, perhaps again: the viewer may know nothing. */
  readonly onOpen: () => void
  /** It could not be opened, or was lost, for the first time since it was open. */
  readonly onDown: (error: Error) => void
}
