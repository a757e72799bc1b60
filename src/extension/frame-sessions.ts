/** The sessions of a tab: its own, and those of its frames in other processes. Each frame is judged by its document. */
import { BrowserError, type DebuggeeEvent, type RefusedFrame } from './debuggee.js'

interface Session extends RefusedFrame {
  url: string
}

/** @param refusal why a page with this address may not be used */
export function createFrameSessions(refusal: (url: string) => BrowserError | undefined) {
  const sessions = new Map<string, Session>()

  /** A frame inside a refused frame, such as an empty page, is refused too. */
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
    /** Why a session may not be used; undefined if it may. */
    refusalIn,
    get allowed(): readonly (string | undefined)[] {
      return [undefined, ...[...sessions.keys()].filter((id) => refusalIn(id) === undefined)]
    },
    get refused(): readonly RefusedFrame[] {
      return [...sessions].flatMap(([id, session]) => (refusalIn(id) === undefined ? [] : [session]))
    },
  }
}

const goneError = (): BrowserError => new BrowserError('REF_GONE', 'The frame is gone. Take a new snapshot.')
