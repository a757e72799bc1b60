/** The frames of a page, in all its processes, that commands may use. */
import type { Protocol } from 'devtools-protocol'
import { BrowserError, ProtocolRefusal } from '../debuggee.js'
import { exceptionText } from './console-log.js'
import { OBJECT_GROUP, type Page } from './page.js'

export interface Frame {
  readonly id: string
  readonly parentId: string | undefined
  /** The session of its process; undefined for the tab's own. */
  readonly sessionId: string | undefined
}

/** Scripts of the tools run in an isolated world: they see the document, but not the definitions of its scripts. */
const WORLD = 'agent-tasks'

export const mainFrameOf = ({ mainFrameId }: Page): Frame => ({
  id: mainFrameId,
  parentId: undefined,
  sessionId: undefined,
})

/** The frames by their ids, the main frame first. Refused frames and their children are left out. */
export async function framesOf(page: Page, signal: AbortSignal): Promise<Map<string, Frame>> {
  const frames = new Map<string, Frame>()
  const add = ({ frame, childFrames = [] }: Protocol.Page.FrameTree, sessionId: string | undefined): void => {
    if (refusalOfDocument(page, frame) !== undefined) return
    frames.set(frame.id, { id: frame.id, parentId: frame.parentId, sessionId })
    for (const child of childFrames) add(child, sessionId)
  }
  for (const sessionId of page.debuggee.sessions.allowed) {
    try {
      const { frameTree } = await page.debuggee.send('Page.getFrameTree', undefined, { sessionId, signal })
      add(frameTree, sessionId)
    } catch (error) {
      // The frame was removed.
      if (sessionId === undefined || !(error instanceof ProtocolRefusal)) throw error
    }
  }
  return frames
}

/** The context in which the tools' scripts run in the document that a frame shows. @throws BrowserError `PAGE_NOT_ALLOWED` */
export async function worldOf(page: Page, frame: Frame, signal: AbortSignal): Promise<number> {
  const { id, sessionId } = frame
  const params = { frameId: id, worldName: WORLD }
  const { executionContextId } = await page.debuggee.send('Page.createIsolatedWorld', params, { sessionId, signal })
  // The context belongs to one document, so the check holds for everything that is done in it.
  await assertAllowed(page, frame, executionContextId, signal)
  return executionContextId
}

/**
 * Checks the document of a frame. A handle or a context from before is invalid for any other document, so that
 * no command acts in a page that was loaded after the check.
 */
async function assertAllowed(page: Page, { id, sessionId }: Frame, world: number, signal: AbortSignal): Promise<void> {
  const options = { sessionId, signal }
  const { frameTree } = await page.debuggee.send('Page.getFrameTree', undefined, options)
  const path = pathTo(frameTree, id)
  const document = path.at(-1)
  if (document === undefined) throw new ProtocolRefusal('Page.getFrameTree', 'The frame navigated or closed.')
  for (const one of path) {
    const refusal = refusalOfDocument(page, one)
    if (refusal !== undefined) throw refusal
  }
  if (/^https?:/.test(document.url)) return
  // An empty page has the origin of its opener.
  const params = { expression: 'self.origin', contextId: world, returnByValue: true }
  const { result } = await page.debuggee.send('Runtime.evaluate', params, options)
  const origin = String(result.value)
  const refusal = origin === 'null' ? undefined : page.refusal(origin)
  if (refusal !== undefined) throw refusal
}

/** The frame and its ancestors. */
function pathTo({ frame, childFrames = [] }: Protocol.Page.FrameTree, id: string): readonly Protocol.Page.Frame[] {
  if (frame.id === id) return [frame]
  for (const child of childFrames) {
    const path = pathTo(child, id)
    if (path.length > 0) return [frame, ...path]
  }
  return []
}

/** An error page belongs to the browser, and its scripts can control it. */
const refusalOfDocument = ({ refusal }: Page, { url }: Protocol.Page.Frame): BrowserError | undefined => refusal(url)

/**
 * Reads from the document that a frame shows.
 * @throws BrowserError `PAGE_NOT_ALLOWED`; ProtocolRefusal when the frame shows another document meanwhile
 */
export async function readDocument<T>(
  page: Page,
  frame: Frame,
  signal: AbortSignal,
  read: (world: number) => Promise<T>,
): Promise<T> {
  const contextId = await worldOf(page, frame, signal)
  const value = await read(contextId)
  // A context ends with its document.
  await page.debuggee.send('Runtime.evaluate', { expression: '0', contextId }, { sessionId: frame.sessionId, signal })
  return value
}

/** Calls a function of the tools in a frame. Returns the result by value. */
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
  if (exceptionDetails !== undefined) throw scriptError(exceptionDetails)
  return result.value as T
}

/** A script of the tools failed because of the page's content. */
export function scriptError(details: Protocol.Runtime.ExceptionDetails): BrowserError {
  const [what = ''] = exceptionText(details).split('\n')
  return new BrowserError('PAGE_ERROR', `The page cannot be read: ${what.slice(0, 500)}`)
}

/** Releases the handles of a command in the page. */
export function releaseHandles({ debuggee, dialogs }: Page): void {
  if (dialogs.open !== undefined) return
  for (const sessionId of debuggee.sessions.allowed) {
    debuggee.send('Runtime.releaseObjectGroup', { objectGroup: OBJECT_GROUP }, { sessionId }).catch(() => undefined)
  }
}
