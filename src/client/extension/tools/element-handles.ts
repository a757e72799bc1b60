/** Handles of the browser for elements, and calls of functions on them. */
import { ProtocolRefusal } from '../debuggee.js'
import { scriptError, worldOf, type Frame } from './frames.js'
import { OBJECT_GROUP, type Page } from './page.js'

export interface Element {
  readonly frame: Frame
  readonly backendNodeId: number
  /** The handle by which the tools' own scripts use the element. */
  readonly objectId: string
}

/** Returns a handle by which the tools' own scripts use an element. */
export async function handleOf(page: Page, frame: Frame, backendNodeId: number, signal: AbortSignal): Promise<string> {
  const options = { sessionId: frame.sessionId, signal }
  const executionContextId = await worldOf(page, frame, signal)
  const params = { backendNodeId, executionContextId, objectGroup: OBJECT_GROUP }
  const { object } = await page.debuggee.send('DOM.resolveNode', params, options)
  // The browser answers null for an element of another frame.
  if (object.objectId === undefined) throw new ProtocolRefusal('DOM.resolveNode', 'The frame has no such element.')
  return object.objectId
}

/** Calls a function of the tools with the element as `this`. Returns a copy of the result. */
export async function callOn<T>(
  { debuggee }: Page,
  { frame, objectId }: Pick<Element, 'frame' | 'objectId'>,
  functionDeclaration: string,
  args: readonly unknown[],
  signal: AbortSignal,
): Promise<T> {
  const { result, exceptionDetails } = await debuggee.send(
    'Runtime.callFunctionOn',
    { objectId, functionDeclaration, arguments: args.map((value) => ({ value })), returnByValue: true },
    { sessionId: frame.sessionId, signal },
  )
  if (exceptionDetails !== undefined) throw scriptError(exceptionDetails)
  return result.value as T
}

export async function scrollIntoView({ debuggee }: Page, element: Element, signal: AbortSignal): Promise<void> {
  const { backendNodeId, frame } = element
  try {
    await debuggee.send('DOM.scrollIntoViewIfNeeded', { backendNodeId }, { sessionId: frame.sessionId, signal })
  } catch (error) {
    // The browser does not scroll to an element without a box. What the caller does next fails, and reports the reason.
    if (!(error instanceof ProtocolRefusal)) throw error
  }
}
