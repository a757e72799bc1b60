/** The options of an inspector, and what it offers. */
import type { InspectionEvent } from 'xstate'
import type { Clock } from '../clock.js'
import type { InspectionMessage } from './messages.js'
import type { Redact } from './redaction.js'

/** What failed: a callback, showing an event (`redact`), or the connection. */
export type InspectorErrorSource = 'filter' | 'redact' | 'connection'

/** Options of `createInspector`. */
export interface InspectorOptions {
  /**
   * The `ws:` or `wss:` URL of a relay; in a browser also the `http:` or `https:` URL of the viewer, which is opened in a window.
   * Default `ws://localhost:8080`, where the relay of `@statelyai/inspect/server` listens.
   */
  readonly url?: string
  /** Whether to send a message. It gets the redacted message. Default: all are sent. */
  readonly filter?: (message: InspectionMessage) => boolean
  /**
   * What is left out: `true` for prompts, outputs, error messages and secrets; `false` for nothing; or a function that is called
   * with each field (`true` means `redactByDefault`). Default true.
   */
  readonly redact?: boolean | Redact
  /** The most messages that may wait to be sent; older ones are dropped and counted. Default 5000. */
  readonly maxBuffered?: number
  /** Called with the first failure of each kind, and each time the connection is lost. Default: `console.error`. */
  readonly onError?: (error: unknown, source: InspectorErrorSource) => void
  /** Drives its timers and timestamps. Default: the platform's. */
  readonly clock?: Clock
}

/** Counts of the messages so far. */
export interface InspectorStats {
  /** Whether there is a connection to the viewer or relay. */
  readonly isConnected: boolean
  /** Given to the connection. */
  readonly sent: number
  /** Waiting to be sent. */
  readonly buffered: number
  /** Not sent because too many were waiting, or because of `close`. */
  readonly dropped: number
  /** Not sent because `filter` returned false. */
  readonly filtered: number
  /** Not sent because `filter` or `redact` threw, or the event could not be read. */
  readonly failed: number
}

/** Shows a viewer what actors do. Pass it as the option `inspect`; XState's own `createActor` takes it too. */
export interface Inspector {
  /** Records an [inspection event](https://stately.ai/docs/inspection). Never throws or blocks. */
  readonly next: (event: InspectionEvent) => void
  /** The current counts. */
  readonly stats: InspectorStats
  /**
   * Sends the waiting messages and closes the connection. Later events are ignored; further calls return the same promise.
   * @param options.timeoutMs the time limit in ms; messages that are left then are dropped. Default 1000.
   */
  readonly close: (options?: InspectorCloseOptions) => Promise<void>
  /** The same as `close()`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** Options of `Inspector.close`. */
export interface InspectorCloseOptions {
  /** The time limit in ms; messages that are left then are dropped. Default 1000. */
  readonly timeoutMs?: number
}
