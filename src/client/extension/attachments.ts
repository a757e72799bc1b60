/**
 * Attaches the browser's debugger to tabs. A tab is attached once, and all commands use that attachment. The tab is detached when it is no longer under
 * control (control.ts).
 */
import { omitUndefined } from '../../data/omit-undefined.js'
import { BrowserError, ProtocolRefusal, type AttachedTab, type Debuggee, type DebuggeeEvent } from './debuggee.js'
import { controlTaken, tabClosed } from './control.js'
import { createFrameSessions } from './frame-sessions.js'
import { refusalOf } from './page-access.js'
import type { Remembered } from './remembered.js'
import { pause } from './tools/waiting.js'

const PROTOCOL = '1.3'

/** How long to wait for the event that says why the browser has detached a tab, in ms. */
const REASON_MS = 1000

interface Attachment extends AttachedTab {
  /** Detaches the tab. Further calls have no effect. */
  end(reason: BrowserError): void
  emit(event: DebuggeeEvent): void
}

export interface Attachments {
  /**
   * Attaches the debugger to a tab. Returns the same object until the tab is detached.
   * @throws BrowserError `PAGE_NOT_ALLOWED`, `DEBUGGER_BUSY` or `TAB_CLOSED`
   */
  attach(tabId: number): Promise<AttachedTab>
  /** Detaches a tab, if it is attached. The commands that run in the tab fail with `reason`. */
  end(tabId: number, reason: BrowserError): void
  /** Detaches the tabs that a previous run of the service worker left attached. If a command was running, these tabs also stop loading. */
  cleanUp(): Promise<void>
}

export interface AttachmentsOptions {
  readonly remembered: () => Promise<Remembered>
  /** Called when the person clicks Cancel in the bar with which the browser reports debugging. */
  readonly onCancelled: (tabId: number) => void
  /** Called when a page of an attached tab is about to open a tab. */
  readonly onOpening: () => void
}

export function createAttachments({ remembered, onCancelled, onOpening }: AttachmentsOptions): Attachments {
  const attached = new Map<number, Promise<Attachment>>()
  const present = new Map<number, Attachment>()

  chrome.debugger.onEvent.addListener(({ tabId, sessionId }, method, params = {}) => {
    const attachment = tabId === undefined ? undefined : present.get(tabId)
    // The cast is safe: the browser sends only events of the DevTools protocol.
    const event = { method, params, sessionId } as DebuggeeEvent
    const refusal = refusalAfter(event)
    if (attachment !== undefined && opensTab(event)) onOpening()
    if (refusal === undefined) attachment?.emit(event)
    else attachment?.end(refusal)
  })
  chrome.debugger.onDetach.addListener(({ tabId }, reason) => {
    if (tabId === undefined) return
    if (reason !== 'canceled_by_user') {
      void whyGone(tabId).then((why) => present.get(tabId)?.end(why))
      return
    }
    present.get(tabId)?.end(controlTaken())
    onCancelled(tabId)
  })

  async function note(change: (tabs: readonly number[]) => readonly number[]): Promise<void> {
    const memory = await remembered()
    await memory.change({ attached: [...change(memory.facts.attached)] })
  }

  async function open(tabId: number): Promise<Attachment> {
    await note((tabs) => [...new Set([...tabs, tabId])])
    const target = await targetOf(tabId)
    const refusal = refusalOf(target?.url ?? '')
    if (refusal !== undefined) throw refusal
    if (target?.attached === true) throw busy()
    await chrome.debugger.attach({ tabId }, PROTOCOL).catch(async (error: unknown) => {
      throw await whyNot(tabId, error)
    })
    const attachment = createAttachment(tabId, () => {
      present.delete(tabId)
      attached.delete(tabId)
      void chrome.debugger.detach({ tabId }).catch(() => undefined)
      void note((tabs) => tabs.filter((tab) => tab !== tabId))
    })
    present.set(tabId, attachment)
    return attachment
  }

  /** Returns the attachment. Detaches the tab if it shows a page that commands may not use: the event of a new page may not have arrived yet. */
  async function reuse(tabId: number, known: Promise<Attachment>): Promise<Attachment> {
    const attachment = await known
    const refusal = refusalOf((await targetOf(tabId))?.url ?? '')
    if (refusal !== undefined) attachment.end(refusal)
    return attachment
  }

  return {
    attach: (tabId) => {
      const known = attached.get(tabId)
      if (known !== undefined) return reuse(tabId, known)
      const opening = open(tabId)
      attached.set(tabId, opening)
      opening.catch(() => {
        if (attached.get(tabId) === opening) attached.delete(tabId)
      })
      return opening
    },
    end: (tabId, reason) => {
      void attached.get(tabId)?.then(
        (attachment) => attachment.end(reason),
        () => undefined,
      )
    },
    cleanUp: async () => {
      const { facts, change } = await remembered()
      await Promise.all(
        facts.attached.map(async (tabId) => {
          if (facts.isWorking) await chrome.debugger.sendCommand({ tabId }, 'Page.stopLoading').catch(() => undefined)
          await chrome.debugger.detach({ tabId }).catch(() => undefined)
        }),
      )
      await change({ attached: [], isWorking: false })
    },
  }
}

function createAttachment(tabId: number, onEnd: () => void): Attachment {
  const detached = new AbortController()
  const listeners = new Set<(event: DebuggeeEvent) => void>()
  const sessions = createFrameSessions(refusalOf)
  const end = (reason: BrowserError): void => {
    if (detached.signal.aborted) return
    detached.abort(reason)
    onEnd()
  }

  const debuggee: Debuggee = {
    detached: detached.signal,
    sessions,
    end,
    onEvent: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    send: async (method, params, { sessionId, signal } = {}) => {
      const given = signal === undefined ? detached.signal : AbortSignal.any([detached.signal, signal])
      given.throwIfAborted()
      const refusal = sessions.refusalIn(sessionId)
      if (refusal !== undefined) throw refusal
      const answer = chrome.debugger.sendCommand(
        { tabId, ...omitUndefined({ sessionId }) },
        method,
        params === undefined ? undefined : { ...params },
      )
      try {
        // The cast is safe: the browser answers as the DevTools protocol specifies.
        return await unlessAborted(answer as Promise<never>, given)
      } catch (error) {
        given.throwIfAborted()
        const message = textOf(error)
        if (sessionId === undefined && /not attached|Detached while/.test(message)) {
          await pause(REASON_MS, detached.signal).catch(() => undefined)
          end(await whyGone(tabId))
        }
        given.throwIfAborted()
        throw new ProtocolRefusal(method, message)
      }
    },
  }
  return {
    id: tabId,
    debuggee,
    end,
    emit: (event) => {
      sessions.take(event)
      for (const listener of [...listeners]) listener(event)
    },
  }
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort: () => void = () => undefined
  const aborted = new Promise<never>((_resolve, reject) => {
    // The reason of the signal is passed on unchanged.
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
    onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort)
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/**
 * Returns why commands may not use the page that the tab has just loaded; undefined for any other event. The browser itself detaches from pages of other
 * extensions, but not from those of this extension, such as its options page.
 */
function refusalAfter({ method, params, sessionId }: DebuggeeEvent): BrowserError | undefined {
  if (method !== 'Page.frameNavigated' || sessionId !== undefined || params.frame.parentId !== undefined) {
    return undefined
  }
  // `unreachableUrl` is set for the error page that the browser shows when an address does not load. The tab stays attached, so that a command can go to
  // another address.
  return params.frame.unreachableUrl === undefined ? refusalOf(params.frame.url) : undefined
}

/** Whether a page opens a tab. The browser blocks a window that a page opens without a user gesture. */
function opensTab({ method, params }: DebuggeeEvent): boolean {
  if (method === 'Page.windowOpen') return params.userGesture
  return method === 'Page.frameRequestedNavigation' && params.disposition === 'newTab'
}

/** Returns the message of an error of `chrome.debugger`. The text is JSON if the DevTools protocol refused the command. */
function textOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  try {
    const { message } = Object(JSON.parse(text)) as { message?: unknown }
    return typeof message === 'string' ? message : text
  } catch {
    return text
  }
}

/** Returns what the debugger knows of a tab, such as its address. `chrome.tabs` would need the permission `tabs` for that. */
export async function targetOf(tabId: number): Promise<chrome.debugger.TargetInfo | undefined> {
  return (await chrome.debugger.getTargets()).find((target) => target.tabId === tabId)
}

async function whyGone(tabId: number): Promise<BrowserError> {
  const tab = await chrome.tabs.get(tabId).catch(() => undefined)
  if (tab === undefined) return tabClosed()
  return (
    refusalOf((await targetOf(tabId))?.url ?? '') ??
    new BrowserError(
      'PAGE_NAVIGATED',
      'The browser has detached the debugger from this tab. It does so when a page loads a frame of an extension, such as the PDF viewer. Try again.',
    )
  )
}

async function whyNot(tabId: number, error: unknown): Promise<BrowserError> {
  const message = textOf(error)
  if (/already attached/.test(message)) return busy()
  if ((await chrome.tabs.get(tabId).catch(() => undefined)) === undefined) return tabClosed()
  return new BrowserError(
    'PAGE_NOT_ALLOWED',
    `The browser lets no extension act in this page. The page may belong to the browser, or have a frame of another extension. The browser says: ${message}`,
  )
}

const busy = (): BrowserError =>
  new BrowserError(
    'DEBUGGER_BUSY',
    'Another debugger is attached to this tab, such as the developer tools. Ask the person to close that debugger, or use another tab.',
  )
