/**
 * Keeps mouse and keyboard input out of frames that commands may not use, such as the PDF viewer. The browser sends input to the frame that is under the
 * pointer or has the focus, whatever frame that is.
 */
import { BrowserError, ProtocolRefusal, type RefusedFrame } from '../debuggee.js'
import { callOn, handleOf, type Element } from './element-handles.js'
import { boxInWindow, ownersOf, type Point } from './frame-points.js'
import { framesOf, mainFrameOf, worldOf } from './frames.js'
import type { Page } from './page.js'
import { HAS_FOCUS, IS_HIT } from './page-scripts.js'

/** @throws BrowserError `PAGE_NOT_ALLOWED` when the mouse is over a frame that commands may not use */
export async function guardMouse(page: Page, at: Point, signal: AbortSignal): Promise<void> {
  await worldOf(page, mainFrameOf(page), signal)
  await guard(page, signal, async (owner) => {
    const { x, y, width, height } = await boxInWindow(page, owner, signal)
    if (at.x < x || at.y < y || at.x > x + width || at.y > y + height) return false
    // `IS_HIT` works only in the main frame, because another frame may be transformed. In other frames, the rectangle of the refused frame counts.
    return owner.frame.id !== page.mainFrameId || callOn<boolean>(page, owner, IS_HIT, [at.x, at.y], signal)
  })
}

/** @throws BrowserError `PAGE_NOT_ALLOWED` when a frame that commands may not use has the focus */
export async function guardKeyboard(page: Page, signal: AbortSignal): Promise<void> {
  await guard(page, signal, async (owner) => {
    for (const one of [owner, ...(await ownersOf(page, owner.frame, signal))]) {
      if (!(await callOn<boolean>(page, one, HAS_FOCUS, [], signal))) return false
    }
    return true
  })
}

async function guard(page: Page, signal: AbortSignal, gets: (owner: Element) => Promise<boolean>): Promise<void> {
  for (const frame of page.debuggee.sessions.refused) {
    const owner = await ownerOf(page, frame, signal)
    if (owner !== undefined && !(await gets(owner))) continue
    throw new BrowserError(
      'PAGE_NOT_ALLOWED',
      'The mouse or keyboard would act in a frame that commands may not use, such as the PDF viewer. Act outside of that frame.',
    )
  }
}

/** The element that contains a frame; undefined when it cannot be found. */
async function ownerOf(
  page: Page,
  { frameId, parentSessionId: sessionId }: RefusedFrame,
  signal: AbortSignal,
): Promise<Element | undefined> {
  const { backendNodeId } = await page.debuggee.send('DOM.getFrameOwner', { frameId }, { sessionId, signal })
  for (const frame of (await framesOf(page, signal)).values()) {
    if (frame.sessionId !== sessionId) continue
    try {
      return { frame, backendNodeId, objectId: await handleOf(page, frame, backendNodeId, signal) }
    } catch (error) {
      // The element belongs to another frame of the same process, which is tried next.
      if (!(error instanceof ProtocolRefusal)) throw error
    }
  }
  return undefined
}
