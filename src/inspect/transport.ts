/** A connection to a viewer, which reports when it opens and when it is lost. The caller checks `canTake` before it sends. */
export interface Transport {
  /** `down` after it was lost or could not be opened, until it is open again. */
  readonly state: 'opening' | 'open' | 'down'
  /** Whether it is open and its buffer is not full. */
  readonly canTake: boolean
  /** Whether all messages have left this process. */
  readonly isDrained: boolean
  /** Sends one message, as JSON text. Does not throw. */
  send(text: string): void
  /** Closes it; resolves when it is closed. */
  close(): Promise<void>
}

/** The events of a transport. None is emitted after `close`. */
export interface TransportEvents {
  /** It is open, possibly again: the viewer may have no actors yet. */
  readonly onOpen: () => void
  /** It could not be opened, or was lost. Not repeated for each failed attempt. */
  readonly onDown: (error: Error) => void
}
