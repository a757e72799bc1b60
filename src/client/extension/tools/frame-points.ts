/** Converts points of frames to points of the tab's window. */
import { callOn, handleOf, type Element } from './element-handles.js'
import { framesOf, type Frame } from './frames.js'
import type { Page } from './page.js'
import { BOX, FRAME_OFFSET, FRAME_POINT } from './page-scripts.js'

/** In CSS pixels. */
export interface Point {
  readonly x: number
  readonly y: number
}

export type PointInWindow =
  | ({ readonly state: 'ready' } & Point)
  | { readonly state: 'gone' | 'outside' }
  | { readonly state: 'covered'; readonly cover: string }

/** Converts a point of a frame to a point of the window. The state is not `ready` if the mouse cannot reach the frame there. */
export async function pointInWindow(
  page: Page,
  frame: Frame,
  point: Point,
  signal: AbortSignal,
): Promise<PointInWindow> {
  let around: PointInWindow = { state: 'ready', x: point.x, y: point.y }
  for (const owner of await ownersOf(page, frame, signal)) {
    if (around.state !== 'ready') break
    around = await callOn<PointInWindow>(page, owner, FRAME_POINT, [around.x, around.y], signal)
  }
  return around
}

/** The rectangle of an element in the tab's window, even if it is not visible there. */
export async function boxInWindow(page: Page, element: Element, signal: AbortSignal) {
  const box = await callOn<Point & { width: number; height: number }>(page, element, BOX, [], signal)
  let corner: Point = box
  for (const owner of await ownersOf(page, element.frame, signal)) {
    corner = await callOn<Point>(page, owner, FRAME_OFFSET, [corner.x, corner.y], signal)
  }
  return { ...box, ...corner }
}

/** The elements that contain a frame and its ancestors, innermost first. */
export async function ownersOf(page: Page, frame: Frame, signal: AbortSignal): Promise<readonly Element[]> {
  const owners: Element[] = []
  if (frame.parentId === undefined) return owners
  const frames = await framesOf(page, signal)
  let inner = frame
  for (;;) {
    const outer = frames.get(inner.parentId ?? '')
    if (outer === undefined) return owners
    const options = { sessionId: outer.sessionId, signal }
    const { backendNodeId } = await page.debuggee.send('DOM.getFrameOwner', { frameId: inner.id }, options)
    owners.push({ frame: outer, backendNodeId, objectId: await handleOf(page, outer, backendNodeId, signal) })
    inner = outer
  }
}
