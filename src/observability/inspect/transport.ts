/** A connection to a viewer. It reports when it opens and when it is lost. The caller checks `canTake` before it sends. */
export interface Transport {
  /** `down` means that the connection was lost or could not be opened. It lasts until the connection is open again. */
  readonly state: 'opening' | 'open' | 'down'
  /** Whether the connection is open and its buffer has room. */
  readonly canTake: boolean
  /** Whether all messages have left this process. */
  readonly isDrained: boolean
  /** Sends one message, as JSON text. Does not throw. */
  send(text: string): void
  /** Closes the connection. Resolves when it is closed. */
  close(): Promise<void>
}

/** The events of a transport. After `close` there are no more events. */
export interface TransportEvents {
  /** The connection is open, perhaps again. The viewer may not have been sent any actors yet. */
  readonly onOpen: () => void
  /** The connection could not be opened, or was lost. Failed attempts after that are not reported. */
  readonly onDown: (error: Error) => void
}
