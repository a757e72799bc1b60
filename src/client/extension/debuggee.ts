/**
 * The browser as the tools see it: its tabs, and the DevTools protocol of each tab. The extension implements these interfaces with `chrome.tabs` and
 * `chrome.debugger`.
 */
import type { ProtocolMapping } from 'devtools-protocol/types/protocol-mapping.js'
import { AgentTasksError } from '../../errors.js'

type Commands = ProtocolMapping.Commands
type Events = ProtocolMapping.Events

export type DebuggeeEvent = {
  [Method in keyof Events]: {
    readonly method: Method
    readonly params: Events[Method][0]
    /** The session of a frame that runs in another process (`Target.setAutoAttach` with `flatten`). Undefined for the session of the tab itself. */
    readonly sessionId: string | undefined
  }
}[keyof Events]

/** The parameters of a method of the DevTools protocol. */
export type DebuggeeParams<Method extends keyof Commands> = Commands[Method]['paramsType'][0]

export interface SendOptions {
  /** The session of a frame that runs in another process. Undefined for the session of the tab itself. */
  readonly sessionId?: string | undefined
  /** When it aborts, `send` rejects with its reason. The command may still take effect. */
  readonly signal?: AbortSignal | undefined
}

/** A frame that runs in another process, and that commands may not use. */
export interface RefusedFrame {
  readonly frameId: string
  /** The session of the parent frame. Undefined if that is the session of the tab itself. */
  readonly parentSessionId: string | undefined
}

export interface FrameSessions {
  /** The sessions that commands may use. Undefined stands for the session of the tab itself. */
  readonly allowed: readonly (string | undefined)[]
  readonly refused: readonly RefusedFrame[]
}

/** The debugger of an attached tab. When the tab is detached and attached again, it gets another object. */
export interface Debuggee {
  /**
   * Sends a command of the DevTools protocol.
   * @throws ProtocolRefusal when the browser answers with an error
   * @throws BrowserError with the reason of `detached` when the tab is no longer attached
   * @throws BrowserError `PAGE_NOT_ALLOWED` or `REF_GONE` when `options.sessionId` may not be used
   * @throws the reason of `options.signal` when that signal aborts
   */
  send<Method extends keyof Commands>(
    method: Method,
    params?: DebuggeeParams<Method>,
    options?: SendOptions,
  ): Promise<Commands[Method]['returnType']>
  /** Calls the listener with each event, in order, until the returned function is called. */
  onEvent(listener: (event: DebuggeeEvent) => void): () => void
  /**
   * Aborts when the tab is no longer attached. Its reason is a BrowserError with the code `TAB_CLOSED`, `CONTROL_TAKEN`, `PAGE_NOT_ALLOWED`,
   * `PAGE_NAVIGATED` or `PAGE_HANGS`.
   */
  readonly detached: AbortSignal
  /** Detaches the tab. `detached` aborts with `reason`. */
  end(reason: BrowserError): void
  /** The sessions of the tab and of its frames in other processes. A command for a session that may not be used fails with `PAGE_NOT_ALLOWED`. */
  readonly sessions: FrameSessions
}

export interface Tab {
  /** The id of the tab. It does not change while the tab is open. */
  readonly id: number
  readonly url: string
  readonly title: string
  /** Whether the tools act in this tab. At most one tab is current. */
  readonly isCurrent: boolean
}

/** The tabs that the person lets the tools use, in the order in which the browser shows them. The tools cannot see any other tab. */
export interface Tabs {
  list(signal: AbortSignal): Promise<readonly Tab[]>
  /** Opens an empty tab (`about:blank`) and makes it the current one. */
  open(signal: AbortSignal): Promise<Tab>
  /** Makes a tab the current one. @throws BrowserError `TAB_CLOSED` for an unknown id */
  select(id: number, signal: AbortSignal): Promise<void>
  /**
   * Closes a tab as the person would: its page may ask whether to leave it (`beforeunload`). Does not wait for the answer. If the tab was the current
   * one, a tab beside it becomes the current one.
   * @throws BrowserError `TAB_CLOSED` for an unknown id
   */
  close(id: number, signal: AbortSignal): Promise<void>
  /**
   * Returns the current tab. Attaches it if necessary. Returns the same object until the tab is detached.
   * @throws BrowserError `NO_TAB`, `TAB_CLOSED`, `PAGE_NOT_ALLOWED`, `CONTROL_TAKEN` or `DEBUGGER_BUSY`
   */
  current(signal: AbortSignal): Promise<AttachedTab>
  /** Returns why commands may not use a page with this address, such as `chrome:` or the web store; undefined if they may. */
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
  /** Commands may not use the page: it belongs to the browser or an extension, or is the web store. */
  | 'PAGE_NOT_ALLOWED'
  /** Another debugger, such as the developer tools, is attached. */
  | 'DEBUGGER_BUSY'
  /** The page shows a dialog that waits for an answer. */
  | 'DIALOG_OPEN'
  /** The page shows no dialog. */
  | 'NO_DIALOG'
  /** The element of a ref is no longer in the page, or the tab shows another page. */
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
  /** The element does not fit the command. For example, it takes no text. */
  | 'WRONG_ELEMENT'
  | 'NAVIGATION_FAILED'
  /** What the tool waited for did not happen within its time limit. */
  | 'WAIT_TIMEOUT'
  /** The page was replaced during the command. */
  | 'PAGE_NAVIGATED'
  /** The page threw an exception. */
  | 'PAGE_ERROR'
  /** The result is too large to be returned. */
  | 'RESULT_TOO_LARGE'
  | 'RESULT_NOT_JSON'
  /** The page's process has ended. */
  | 'PAGE_CRASHED'
  /** The page does not answer, or produces too many events. */
  | 'PAGE_HANGS'
  /** The browser refused a command. */
  | 'BROWSER_REFUSED'
  | 'INVALID_ARGUMENTS'

/** The error of a browser command. Its message says what the model can do. */
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
