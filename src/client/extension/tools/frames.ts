/** The frames of a page that commands may use, including those that run in other processes. */
import type { Protocol } from 'devtools-protocol'
import { BrowserError, ProtocolRefusal } from '../debuggee.js'
import { exceptionText } from './console-log.js'
import { OBJECT_GROUP, type Page } from './page.js'

export interface Frame {
  readonly id: string
  readonly parentId: string | undefined
  /** The session of the frame's process. Undefined for the session of the tab itself. */
  readonly sessionId: string | undefined
}

/** The name of the isolated world in which the tools' own scripts run. They see the document, but not what the page's scripts define. */
const WORLD = 'agent-tasks'

export const mainFrameOf = ({ mainFrameId }: Page): Frame => ({
  id: mainFrameId,
  parentId: undefined,
  sessionId: undefined,
})

/** Returns the frames by their ids, the main frame first. Leaves out frames that commands may not use, with the frames inside them. */
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
      // The frame was removed meanwhile.
      if (sessionId === undefined || !(error instanceof ProtocolRefusal)) throw error
    }
  }
  return frames
}

/**
 * Returns the id of the context in which the tools' own scripts run in a frame's document.
 * @throws BrowserError `PAGE_NOT_ALLOWED` if commands may not use the document
 */
export async function worldOf(page: Page, frame: Frame, signal: AbortSignal): Promise<number> {
  const { id, sessionId } = frame
  const params = { frameId: id, worldName: WORLD }
  const { executionContextId } = await page.debuggee.send('Page.createIsolatedWorld', params, { sessionId, signal })
  // The context belongs to one document. So the check holds for everything that runs in this context.
  await assertAllowed(page, frame, executionContextId, signal)
  return executionContextId
}

/**
 * Checks that commands may use the document of a frame. A handle or context that was taken before the check is invalid in any other document. So no
 * command acts in a page that was loaded after the check.
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
  // An empty page has no address of its own, but the origin of the page that opened it.
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

/** An error page is refused because of its own address (`chrome-error:`). It belongs to the browser, and a script could control it. */
const refusalOfDocument = ({ refusal }: Page, { url }: Protocol.Page.Frame): BrowserError | undefined => refusal(url)

/**
 * Reads from the document that a frame shows.
 * @throws BrowserError `PAGE_NOT_ALLOWED` if commands may not use the document
 * @throws ProtocolRefusal if the frame loads another document meanwhile
 */
export async function readDocument<T>(
  page: Page,
  frame: Frame,
  signal: AbortSignal,
  read: (world: number) => Promise<T>,
): Promise<T> {
  const contextId = await worldOf(page, frame, signal)
  const value = await read(contextId)
  // A context ends with its document. So this fails if the document was replaced while it was read.
  await page.debuggee.send('Runtime.evaluate', { expression: '0', contextId }, { sessionId: frame.sessionId, signal })
  return value
}

/** Calls a function of the tools in a frame. Returns a copy of the result. */
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

export function scriptError(details: Protocol.Runtime.ExceptionDetails): BrowserError {
  const [what = ''] = exceptionText(details).split('\n')
  return new BrowserError('PAGE_ERROR', `The page cannot be read: ${what.slice(0, 500)}`)
}

export function releaseHandles({ debuggee, dialogs }: Page): void {
  if (dialogs.open !== undefined) return
  for (const sessionId of debuggee.sessions.allowed) {
    debuggee.send('Runtime.releaseObjectGroup', { objectGroup: OBJECT_GROUP }, { sessionId }).catch(() => undefined)
  }
}
