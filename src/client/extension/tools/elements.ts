/** Finds the element that an argument names, and a point where the mouse can reach it. */
import { BrowserError, ProtocolRefusal } from '../debuggee.js'
import { callOn, handleOf, scrollIntoView, type Element } from './element-handles.js'
import { framesOf, mainFrameOf, worldOf } from './frames.js'
import { OBJECT_GROUP, type Page } from './page.js'
import { pointInWindow, type Point } from './frame-points.js'
import { PROBE, QUERY } from './page-scripts.js'
import { goneError, isRef } from './refs.js'
import { pause, until } from './waiting.js'

/** How long an element may take to appear, to come to rest, and to be uncovered, in ms. */
export interface Patience {
  readonly actionMs: number
}

type Probe =
  | { readonly state: 'gone' | 'outside' | 'invisible'; readonly what?: string }
  | { readonly state: 'covered'; readonly what?: string; readonly cover: string }
  | ({ readonly state: 'ready'; readonly what: string; readonly isDisabled: boolean } & Point)

/** @throws BrowserError `REF_GONE`, `ELEMENT_NOT_FOUND`, `ELEMENT_AMBIGUOUS`, `INVALID_ARGUMENTS` for a bad selector */
export async function findElement(
  page: Page,
  target: string,
  { actionMs }: Patience,
  signal: AbortSignal,
): Promise<Element> {
  if (isRef(target)) return elementOfRef(page, target, signal)
  let found: Element | undefined
  await until(async () => (found = await querySelector(page, target, signal)) !== undefined, { ms: actionMs, signal })
  if (found !== undefined) return found
  throw new BrowserError('ELEMENT_NOT_FOUND', `No element matches ${JSON.stringify(target)}.`)
}

async function elementOfRef(page: Page, ref: string, signal: AbortSignal): Promise<Element> {
  const { frameId, backendNodeId } = page.refs.elementOf(ref)
  const frame = (await framesOf(page, signal)).get(frameId)
  if (frame === undefined) throw goneError(ref)
  try {
    const objectId = await handleOf(page, frame, backendNodeId, signal)
    const element = { frame, backendNodeId, objectId }
    const { state } = await callOn<Probe>(page, element, PROBE, [], signal)
    if (state !== 'gone') return element
  } catch (error) {
    if (!(error instanceof ProtocolRefusal)) throw error
  }
  throw goneError(ref)
}

async function querySelector(page: Page, selector: string, signal: AbortSignal): Promise<Element | undefined> {
  const frame = mainFrameOf(page)
  const executionContextId = await worldOf(page, frame, signal)
  const { debuggee } = page
  const query = { functionDeclaration: QUERY, executionContextId, arguments: [{ value: selector }] }
  const answer = await debuggee.send('Runtime.callFunctionOn', { ...query, objectGroup: OBJECT_GROUP }, { signal })
  if (answer.exceptionDetails !== undefined) {
    throw new BrowserError(
      'INVALID_ARGUMENTS',
      `arguments.target: ${JSON.stringify(selector)} is neither a ref nor a CSS selector.`,
    )
  }
  const { result } = await debuggee.send(
    'Runtime.getProperties',
    { objectId: answer.result.objectId ?? '', ownProperties: true },
    { signal },
  )
  const handles = result.filter(({ name }) => /^\d+$/.test(name)).map(({ value }) => value?.objectId ?? '')
  const [objectId] = handles
  if (objectId === undefined) return undefined
  if (handles.length > 1) {
    throw new BrowserError(
      'ELEMENT_AMBIGUOUS',
      `${handles.length} elements match ${JSON.stringify(selector)}. Pass the ref of one of them from browser_snapshot, or a more specific selector.`,
    )
  }
  const { node } = await debuggee.send('DOM.describeNode', { objectId }, { signal })
  return { frame, backendNodeId: node.backendNodeId, objectId }
}

/** An element, and the point where the mouse reaches it, in CSS pixels of the tab's window. */
export interface Reachable {
  readonly element: Element
  readonly point: Point
  readonly what: string
}

/** The time between the two checks that an element has not moved, in ms. */
const REST_MS = 30

/**
 * Scrolls to the element, and waits until it is visible, at rest and not covered, and with `mustBeEnabled` until it is enabled.
 * @throws BrowserError as `findElement` does, or with `ELEMENT_COVERED`, `ELEMENT_INVISIBLE` or `ELEMENT_DISABLED` when the time of `options` is over
 */
export async function reachElement(
  page: Page,
  target: string,
  options: Patience & { readonly mustBeEnabled?: boolean },
  signal: AbortSignal,
): Promise<Reachable> {
  let reached: Reachable | undefined
  let problem: BrowserError | undefined
  await until(
    async () => {
      const element = await findElement(page, target, options, signal)
      await scrollIntoView(page, element, signal)
      const first = await probe(page, element, signal)
      await pause(REST_MS, signal)
      const second = await probe(page, element, signal)
      problem = problemOf(second, target, options.mustBeEnabled === true)
      if (problem !== undefined || first.state !== 'ready' || second.state !== 'ready') return false
      problem = new BrowserError('ELEMENT_INVISIBLE', `${second.what} does not stop moving.`)
      if (Math.abs(first.x - second.x) > 1 || Math.abs(first.y - second.y) > 1) return false
      reached = { element, point: second, what: second.what }
      return true
    },
    { ms: options.actionMs, signal },
  )
  if (reached !== undefined) return reached
  throw problem ?? goneError(target)
}

/** The state of an element, with its point in the tab's window. */
async function probe(page: Page, element: Element, signal: AbortSignal): Promise<Probe> {
  const inFrame = await callOn<Probe>(page, element, PROBE, [], signal)
  if (inFrame.state !== 'ready') return inFrame
  const around = await pointInWindow(page, element.frame, inFrame, signal)
  return around.state === 'ready' ? { ...inFrame, x: around.x, y: around.y } : { ...around, what: inFrame.what }
}

function problemOf(probed: Probe, target: string, mustBeEnabled: boolean): BrowserError | undefined {
  const what = `${target} (${probed.what ?? 'an element'})`
  switch (probed.state) {
    case 'gone':
      return goneError(target)
    case 'invisible':
      return new BrowserError('ELEMENT_INVISIBLE', `${what} is not visible.`)
    case 'outside':
      return new BrowserError('ELEMENT_INVISIBLE', `${what} cannot be scrolled into the window.`)
    case 'covered':
      return new BrowserError('ELEMENT_COVERED', `${what} is covered by ${probed.cover}.`)
    case 'ready':
      if (!mustBeEnabled || !probed.isDisabled) return undefined
      return new BrowserError('ELEMENT_DISABLED', `${what} is disabled.`)
  }
}
