/** What the tools get of a browser: its tabs, and the DevTools protocol of each. An adapter implements it over `chrome.tabs` and `chrome.debugger`. */
import type { ProtocolMapping } from 'devtools-protocol/types/protocol-mapping.js'
import { AgentTasksError } from '../errors.js'

type Commands = ProtocolMapping.Commands
type Events = ProtocolMapping.Events

/** An event of the DevTools protocol. */
export type DebuggeeEvent = {
  [Method in keyof Events]: {
    readonly method: Method
    readonly params: Events[Method][0]
    /** The session of a frame in another process (flattened `Target.setAutoAttach`); undefined for the tab's own. */
    readonly sessionId: string | undefined
  }
}[keyof Events]

/** The parameters of a method of the DevTools protocol. */
export type DebuggeeParams<Method extends keyof Commands> = Commands[Method]['paramsType'][0]

export interface SendOptions {
  /** The session of a frame in another process; undefined for the tab's own. */
  readonly sessionId?: string | undefined
  /** Rejects the promise with its reason; the command may still take effect. */
  readonly signal?: AbortSignal | undefined
}

/** A frame in another process that may not be acted in. */
export interface RefusedFrame {
  readonly frameId: string
  /** The session of the frame around it; undefined for the tab's own. */
  readonly parentSessionId: string | undefined
}

export interface FrameSessions {
  /** The sessions that may be used; undefined is the tab's own. */
  readonly allowed: readonly (string | undefined)[]
  readonly refused: readonly RefusedFrame[]
}

/** An attached tab. Attached again it is another object. */
export interface Debuggee {
  /**
   * Sends a command of the DevTools protocol.
   * @throws ProtocolRefusal when the browser answers with an error; the reason of `detached`; the reason of `options.signal`
   */
  send<Method extends keyof Commands>(
    method: Method,
    params?: DebuggeeParams<Method>,
    options?: SendOptions,
  ): Promise<Commands[Method]['returnType']>
  /** Calls the listener with each event, in order, until the returned function is called. */
  onEvent(listener: (event: DebuggeeEvent) => void): () => void
  /** Aborts when the tab is no longer attached, with a BrowserError: `TAB_CLOSED`, `CONTROL_TAKEN`, `PAGE_NOT_ALLOWED`, `DEBUGGER_BUSY`, `PAGE_NAVIGATED`. */
  readonly detached: AbortSignal
  /** Detaches: `detached` aborts with the reason. */
  end(reason: BrowserError): void
  /** Its sessions. A command for one that may not be used fails with `PAGE_NOT_ALLOWED`. */
  readonly sessions: FrameSessions
}

export interface Tab {
  /** Stays the same while the tab is open. */
  readonly id: number
  readonly url: string
  readonly title: string
  /** The tools act in this tab. At most one is. */
  readonly isCurrent: boolean
}

/** The tabs that the person lets the tools use, in the order of the browser. Others are not listed, and their ids are unknown. */
export interface Tabs {
  list(signal: AbortSignal): Promise<readonly Tab[]>
  /** Opens an empty tab (`about:blank`), which becomes the current one. */
  open(signal: AbortSignal): Promise<Tab>
  /** Makes it the current tab. @throws BrowserError `TAB_CLOSED` when there is none of this id */
  select(id: number, signal: AbortSignal): Promise<void>
  /**
   * Asks it to close, as the person would: a page with a `beforeunload` handler may ask first. Does not wait for that. Of the tabs that are
   * left, the next one becomes the current one if it was.
   * @throws BrowserError `TAB_CLOSED`
   */
  close(id: number, signal: AbortSignal): Promise<void>
  /**
   * The current tab, which is attached if it was not; the same object until it is detached.
   * @throws BrowserError `NO_TAB`, `PAGE_NOT_ALLOWED`, `CONTROL_TAKEN`, `DEBUGGER_BUSY`
   */
  current(signal: AbortSignal): Promise<AttachedTab>
  /** Why no tab may show this address (`chrome:`, the web store); undefined if it may. */
  readonly refusal: (url: string) => BrowserError | undefined
}

export interface AttachedTab {
  readonly id: number
  readonly debuggee: Debuggee
}

/** What a command of a browser fails with. */
export type BrowserErrorCode =
  /** No tab is under control. */
  | 'NO_TAB'
  /** The tab was closed, or there is none of this number. */
  | 'TAB_CLOSED'
  /** The person took the tab back. */
  | 'CONTROL_TAKEN'
  /** The page of a browser itself, the web store, or another tab. */
  | 'PAGE_NOT_ALLOWED'
  /** Another debugger, such as the developer tools, is attached. */
  | 'DEBUGGER_BUSY'
  /** The page shows a dialog, which waits for an answer. */
  | 'DIALOG_OPEN'
  /** The page shows no dialog. */
  | 'NO_DIALOG'
  /** The element is of an earlier snapshot, or is no longer in the page. */
  | 'REF_GONE'
  /** No element matches. */
  | 'ELEMENT_NOT_FOUND'
  /** Several elements match. */
  | 'ELEMENT_AMBIGUOUS'
  /** Another element is where the click would go. */
  | 'ELEMENT_COVERED'
  /** The element has no place on the screen. */
  | 'ELEMENT_INVISIBLE'
  | 'ELEMENT_DISABLED'
  /** Such as text for an element that takes none. */
  | 'WRONG_ELEMENT'
  | 'NAVIGATION_FAILED'
  /** The tool's own limit of time. */
  | 'WAIT_TIMEOUT'
  /** Another page replaced the one that was asked. */
  | 'PAGE_NAVIGATED'
  /** The page threw an exception. */
  | 'PAGE_ERROR'
  /** The result cannot be said as JSON, or has too many bytes. */
  | 'RESULT_TOO_LARGE'
  | 'RESULT_NOT_JSON'
  /** Its process has ended. */
  | 'PAGE_CRASHED'
  /** The page does not answer. */
  | 'PAGE_HANGS'
  /** The browser refused a command. */
  | 'BROWSER_REFUSED'
  | 'INVALID_ARGUMENTS'

/** An error that a model can act on. */
export class BrowserError extends AgentTasksError {
  override readonly name: string = 'BrowserError'
  override readonly code: BrowserErrorCode

  constructor(code: BrowserErrorCode, message: string) {
    super(code, message)
    this.code = code
  }
}

/** The browser's answer to a command of the DevTools protocol was an error. */
export class ProtocolRefusal extends BrowserError {
  override readonly name = 'ProtocolRefusal'
  readonly method: string

  constructor(method: string, message: string) {
    super('BROWSER_REFUSED', `${method}: ${message}`)
    this.method = method
  }
}
