/** The frames of a page, of all its processes, that may be acted in. */
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

/** Scripts of the tools run beside those of the page: they see its document, and nothing that its scripts define. */
const WORLD = 'agent-tasks'

export const mainFrameOf = ({ mainFrameId }: Page): Frame => ({
  id: mainFrameId,
  parentId: undefined,
  sessionId: undefined,
})

/** The frames by their ids, the main frame first. Those that may not be acted in are left out, with the frames in them. */
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
      // The frame went away.
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
  // The context is that of one document: what is allowed now is allowed for all that is done in it.
  await assertAllowed(page, frame, executionContextId, signal)
  return executionContextId
}

/**
 * Checks the document that a frame shows. A handle or a context that was got before is good for no other one, so that
 * nothing is done in a page that comes after the check.
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
  // An empty page has the origin of the one that opened it.
  const params = { expression: 'self.origin', contextId: world, returnByValue: true }
  const { result } = await page.debuggee.send('Runtime.evaluate', params, options)
  const origin = String(result.value)
  const refusal = origin === 'null' ? undefined : page.refusal(origin)
  if (refusal !== undefined) throw refusal
}

/** The frames around a frame, and it. */
function pathTo({ frame, childFrames = [] }: Protocol.Page.FrameTree, id: string): readonly Protocol.Page.Frame[] {
  if (frame.id === id) return [frame]
  for (const child of childFrames) {
    const path = pathTo(child, id)
    if (path.length > 0) return [frame, ...path]
  }
  return []
}

/** An error page is one of the browser, which its scripts can tell to do things. */
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
  if (exceptionDetails !== undefined) throw scriptError(exceptionDetails)
  return result.value as T
}

/** A script of the tools failed: the page is such as it does not expect. */
export function scriptError(details: Protocol.Runtime.ExceptionDetails): BrowserError {
  const [what = ''] = exceptionText(details).split('\n')
  return new BrowserError('PAGE_ERROR', `The page cannot be read: ${what.slice(0, 500)}`)
}

/** Lets the page forget the handles of a command. */
export function releaseHandles({ debuggee, dialogs }: Page): void {
  if (dialogs.open !== undefined) return
  for (const sessionId of debuggee.sessions.allowed) {
    debuggee.send('Runtime.releaseObjectGroup', { objectGroup: OBJECT_GROUP }, { sessionId }).catch(() => undefined)
  }
}
