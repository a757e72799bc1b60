/**
 * The DevTools sessions of a tab: that of the tab itself, and those of its frames in other processes. Whether commands may use the session of a frame
 * depends on the address that the frame shows.
 */
import { BrowserError, type DebuggeeEvent, type RefusedFrame } from './debuggee.js'

interface Session extends RefusedFrame {
  url: string
}

/** @param refusal returns why commands may not use a page with this address; undefined if they may */
export function createFrameSessions(refusal: (url: string) => BrowserError | undefined) {
  const sessions = new Map<string, Session>()

  /**
   * Returns why commands may not use a session; undefined if they may. A frame inside a refused frame is refused, too, even if it shows an empty page.
   */
  function refusalIn(sessionId: string | undefined): BrowserError | undefined {
    if (sessionId === undefined) return undefined
    const session = sessions.get(sessionId)
    if (session === undefined) return goneError()
    return refusal(session.url) ?? refusalIn(session.parentSessionId)
  }

  return {
    take: ({ method, params, sessionId }: DebuggeeEvent): void => {
      if (method === 'Target.attachedToTarget') {
        const { targetId: frameId, url } = params.targetInfo
        for (const [id, known] of sessions) if (known.frameId === frameId) sessions.delete(id)
        sessions.set(params.sessionId, { frameId, parentSessionId: sessionId, url })
      } else if (method === 'Target.detachedFromTarget') {
        sessions.delete(params.sessionId)
      } else if (method === 'Page.frameNavigated' && sessionId !== undefined) {
        const session = sessions.get(sessionId)
        const { id, url } = params.frame
        if (session?.frameId === id) session.url = url
      }
    },
    refusalIn,
    get allowed(): readonly (string | undefined)[] {
      return [undefined, ...[...sessions.keys()].filter((id) => refusalIn(id) === undefined)]
    },
    get refused(): readonly RefusedFrame[] {
      return [...sessions].flatMap(([id, session]) => (refusalIn(id) === undefined ? [] : [session]))
    },
  }
}

const goneError = (): BrowserError =>
  new BrowserError('REF_GONE', 'The page no longer has this frame. Take a new snapshot.')
