/** The options of an inspector, and what it offers. */
import type { InspectionEvent } from 'xstate'
import type { Clock } from '../../system/clock.js'
import type { InspectionMessage } from './messages.js'
import type { Redact } from './redaction.js'

/** What failed: a callback (`filter`), showing an event (`redact`), or the connection. */
export type InspectorErrorSource = 'filter' | 'redact' | 'connection'

/** Options of `createInspector`. */
export interface InspectorOptions {
  /**
   * The `ws:` or `wss:` URL of a relay. In a browser also the `http:` or `https:` URL of the viewer, which is then opened in a window.
   * Default `ws://localhost:8080`, the URL of the relay of `@statelyai/inspect/server`.
   */
  readonly url?: string
  /** Returns whether to send a message. The message is already redacted. Default: all messages are sent. */
  readonly filter?: (message: InspectionMessage) => boolean
  /**
   * What is left out of messages. `true`, the default: prompts, outputs, error messages and secrets. `false`: nothing. A function: it is called with
   * each field, and returns the value to show.
   */
  readonly redact?: boolean | Redact
  /** The maximum number of messages that wait to be sent. Beyond it, the oldest ones are dropped and counted. Default 5000. */
  readonly maxBuffered?: number
  /** Called with the first failure of each source, and each time the connection is lost. Default: `console.error`. */
  readonly onError?: (error: unknown, source: InspectorErrorSource) => void
  /** The source of time and timers. Default: the platform's clock. */
  readonly clock?: Clock
}

/** Counts of the messages so far. */
export interface InspectorStats {
  /** Whether the inspector is connected to the viewer or relay. */
  readonly isConnected: boolean
  /** The number of messages that were passed to the connection. */
  readonly sent: number
  /** The number of messages that wait to be sent. */
  readonly buffered: number
  /** The number of messages that were dropped, because too many were waiting, or because of `close`. */
  readonly dropped: number
  /** The number of messages for which `filter` returned false. */
  readonly filtered: number
  /** The number of messages that were not sent because `filter` or `redact` threw, or the event could not be read. */
  readonly failed: number
}

/** Shows a viewer what actors do. Pass it as the option `inspect`. `createActor` of XState accepts it as well. */
export interface Inspector {
  /** Records an [inspection event](https://stately.ai/docs/inspection). Never throws or blocks. */
  readonly next: (event: InspectionEvent) => void
  /** The current counts. */
  readonly stats: InspectorStats
  /**
   * Sends the waiting messages and closes the connection. Later events are ignored. Further calls return the same promise.
   * @param options.timeoutMs the time limit in ms. Messages that are left after it are dropped. Default 1000.
   */
  readonly close: (options?: InspectorCloseOptions) => Promise<void>
  /** The same as `close()`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** Options of `Inspector.close`. */
export interface InspectorCloseOptions {
  /** The time limit in ms. Messages that are left after it are dropped. Default 1000. */
  readonly timeoutMs?: number
}
