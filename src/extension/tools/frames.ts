/** The frames of a page, of all its processes. */
import type { Protocol } from 'devtools-protocol'
import { ProtocolRefusal } from '../debuggee.js'
import { OBJECT_GROUP, type Page } from './page.js'

export interface Frame {
  readonly id: string
  readonly parentId: string | undefined
  /** The session of its process; undefined for the tab's own. */
  readonly sessionId: string | undefined
}

/** Scripts of the tools run beside those of the page: they see its document, and nothing that its scripts define. */
const WORLD = 'agent-tasks'

export const mainFrameOf = ({ mainFrameId }: Page): Frame => ({
  id: mainFrameId,
  parentId: undefined,
  sessionId: undefined,
})

/** The frames by their ids, the main frame first. */
export async function framesOf({ debuggee, sessionIds }: Page, signal: AbortSignal): Promise<Map<string, Frame>> {
  const frames = new Map<string, Frame>()
  const add = ({ frame, childFrames = [] }: Protocol.Page.FrameTree, sessionId: string | undefined): void => {
    frames.set(frame.id, { id: frame.id, parentId: frame.parentId, sessionId })
    for (const child of childFrames) add(child, sessionId)
  }
  for (const sessionId of sessionIds) {
    try {
      const { frameTree } = await debuggee.send('Page.getFrameTree', undefined, { sessionId, signal })
      add(frameTree, sessionId)
    } catch (error) {
      // The frame went away.
      if (sessionId === undefined || !(error instanceof ProtocolRefusal)) throw error
    }
  }
  return frames
}

/** The context in which the tools' scripts run in a frame. */
export async function worldOf({ debuggee }: Page, { id, sessionId }: Frame, signal: AbortSignal): Promise<number> {
  const params = { frameId: id, worldName: WORLD }
  const { executionContextId } = await debuggee.send('Page.createIsolatedWorld', params, { sessionId, signal })
  return executionContextId
}

/** Calls a function of the tools in a frame. Returns what it returns, by value. */
export async function callIn<T>(
  page: Page,
  frame: Frame,
  functionDeclaration: string,
  args: readonly unknown[],
  signal: AbortSignal,
): Promise<T> {
  const executionContextId = await worldOf(page, frame, signal)
  const { result, exceptionDetails } = await page.debuggee.send(
    'Runtime.callFunctionOn',
    { functionDeclaration, executionContextId, arguments: args.map((value) => ({ value })), returnByValue: true },
    { sessionId: frame.sessionId, signal },
  )
  if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
  return result.value as T
}

/** Lets the page forget the handles of a command. */
export function releaseHandles({ debuggee, sessionIds, dialogs }: Page): void {
  if (dialogs.open !== undefined) return
  for (const sessionId of sessionIds) {
    debuggee.send('Runtime.releaseObjectGroup', { objectGroup: OBJECT_GROUP }, { sessionId }).catch(() => undefined)
  }
}
