/** Keeps mouse and keyboard out of the frames of a page that may not be acted in, such as those of the PDF viewer: the browser sends input to what is under it. */
import { BrowserError, ProtocolRefusal, type RefusedFrame } from '../debuggee.js'
import { callOn, handleOf, type Element } from './element-handles.js'
import { boxInWindow, ownersOf, type Point } from './frame-points.js'
import { framesOf, mainFrameOf, worldOf } from './frames.js'
import type { Page } from './page.js'
import { HAS_FOCUS, IS_HIT } from './page-scripts.js'

/** @throws BrowserError `PAGE_NOT_ALLOWED` when the mouse is over a frame that may not be acted in */
export async function guardMouse(page: Page, at: Point, signal: AbortSignal): Promise<void> {
  await worldOf(page, mainFrameOf(page), signal)
  await guard(page, signal, async (owner) => {
    const { x, y, width, height } = await boxInWindow(page, owner, signal)
    if (at.x < x || at.y < y || at.x > x + width || at.y > y + height) return false
    // In a frame, whose transformations are not known here, nothing may lie above it.
    return owner.frame.id !== page.mainFrameId || callOn<boolean>(page, owner, IS_HIT, [at.x, at.y], signal)
  })
}

/** @throws BrowserError `PAGE_NOT_ALLOWED` when keys go to a frame that may not be acted in */
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
      'Mouse or keyboard would act in a frame that may not be acted in, such as that of the PDF viewer.',
    )
  }
}

/** The element that shows a frame; undefined when it cannot be found. */
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
      // It is in another frame of this process.
      if (!(error instanceof ProtocolRefusal)) throw error
    }
  }
  return undefined
}
