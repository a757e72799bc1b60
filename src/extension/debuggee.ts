/** The browser as the tools see it: its tabs, and the DevTools protocol of each. An adapter implements it with `chrome.tabs` and `chrome.debugger`. */
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

/** A frame in another process that commands may not use. */
export interface RefusedFrame {
  readonly frameId: string
  /** The session of the parent frame; undefined for the tab's own. */
  readonly parentSessionId: string | undefined
}

export interface FrameSessions {
  /** The sessions that may be used; undefined stands for the tab's own. */
  readonly allowed: readonly (string | undefined)[]
  readonly refused: readonly RefusedFrame[]
}

/** An attached tab. Attaching it again makes another object. */
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
  /** Detaches the tab; `detached` aborts with the reason. */
  end(reason: BrowserError): void
  /** Its sessions. A command for a refused session fails with `PAGE_NOT_ALLOWED`. */
  readonly sessions: FrameSessions
}

export interface Tab {
  /** Constant while the tab is open. */
  readonly id: number
  readonly url: string
  readonly title: string
  /** Whether the tools act in this tab. At most one tab is current. */
  readonly isCurrent: boolean
}

/** The tabs that the person lets the tools use, in the order of the browser. Other tabs are not listed, and their ids are unknown. */
export interface Tabs {
  list(signal: AbortSignal): Promise<readonly Tab[]>
  /** Opens an empty tab (`about:blank`), which becomes the current one. */
  open(signal: AbortSignal): Promise<Tab>
  /** Makes it the current tab. @throws BrowserError `TAB_CLOSED` for an unknown id */
  select(id: number, signal: AbortSignal): Promise<void>
  /**
   * Asks it to close, as the person would. A page with a `beforeunload` handler may ask first; this is not awaited. If the tab was current, the next
   * one becomes current.
   * @throws BrowserError `TAB_CLOSED`
   */
  close(id: number, signal: AbortSignal): Promise<void>
  /**
   * The current tab, which is attached if necessary; the same object until it is detached.
   * @throws BrowserError `NO_TAB`, `PAGE_NOT_ALLOWED`, `CONTROL_TAKEN`, `DEBUGGER_BUSY`
   */
  current(signal: AbortSignal): Promise<AttachedTab>
  /** Why this address (`chrome:`, the web store) is refused; undefined if it is allowed. */
  readonly refusal: (url: string) => BrowserError | undefined
}

export interface AttachedTab {
  readonly id: number
  readonly debuggee: Debuggee
}

/** The error codes of browser commands. */
export type BrowserErrorCode =
  /** No tab is under control. */
  | 'NO_TAB'
  /** The tab was closed, or the id is unknown. */
  | 'TAB_CLOSED'
  /** The person took the tab back. */
  | 'CONTROL_TAKEN'
  /** A page of the browser itself, the web store, or a tab that is not under control. */
  | 'PAGE_NOT_ALLOWED'
  /** Another debugger, such as the developer tools, is attached. */
  | 'DEBUGGER_BUSY'
  /** The page shows a dialog that waits for an answer. */
  | 'DIALOG_OPEN'
  /** The page shows no dialog. */
  | 'NO_DIALOG'
  /** The element belongs to an earlier snapshot, or is no longer in the page. */
  | 'REF_GONE'
  /** No element matches. */
  | 'ELEMENT_NOT_FOUND'
  /** Several elements match. */
  | 'ELEMENT_AMBIGUOUS'
  /** Another element would receive the click. */
  | 'ELEMENT_COVERED'
  /** The element is not visible on the screen. */
  | 'ELEMENT_INVISIBLE'
  | 'ELEMENT_DISABLED'
  /** For example, text for an element that takes no text. */
  | 'WRONG_ELEMENT'
  | 'NAVIGATION_FAILED'
  /** The tool's own time limit. */
  | 'WAIT_TIMEOUT'
  /** The page was replaced during the command. */
  | 'PAGE_NAVIGATED'
  /** The page threw an exception. */
  | 'PAGE_ERROR'
  /** The result is not JSON, or too large. */
  | 'RESULT_TOO_LARGE'
  | 'RESULT_NOT_JSON'
  /** The page's process has ended. */
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

/** The browser answered a command of the DevTools protocol with an error. */
export class ProtocolRefusal extends BrowserError {
  override readonly name = 'ProtocolRefusal'
  readonly method: string

  constructor(method: string, message: string) {
    super('BROWSER_REFUSED', `${method}: ${message}`)
    this.method = method
  }
}
