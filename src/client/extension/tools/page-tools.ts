/** The tools that read pages, wait for them, and answer their dialogs. */
import { z } from 'zod'
import { omitUndefined } from '../../../data/omit-undefined.js'
import type { InstanceTool } from '../../../protocol/instance-tools.js'
import type { ToolContent } from '../../../protocol/tool-calls.js'
import { BrowserError, ProtocolRefusal } from '../debuggee.js'
import { scrollIntoView } from './element-handles.js'
import { findElement } from './elements.js'
import { evaluate } from './evaluate.js'
import { boxInWindow } from './frame-points.js'
import { callIn, framesOf, mainFrameOf, readDocument } from './frames.js'
import { PIXEL_RATIO, SHOWN_TEXTS } from './page-scripts.js'
import { navigatedError, pageLines } from './perform.js'
import { takePicture } from './screenshot.js'
import { takeSnapshot } from './snapshot.js'
import { ELEMENT, pageTool, unlessDialog, type PageCall, type Toolkit } from './toolkit.js'
import { pause, until } from './waiting.js'

const OPTIONAL_ELEMENT = { element: ELEMENT.element, target: ELEMENT.target.optional() }
const MAX_WAIT_S = 30

export function pageTools(toolkit: Toolkit): readonly InstanceTool[] {
  return [
    pageTool(toolkit, {
      name: 'browser_snapshot',
      description:
        'Describes what the page shows, as a tree with a ref for each element. To act in the page, use this instead of a picture',
      inputSchema: z.strictObject({
        target: OPTIONAL_ELEMENT.target.describe(
          'The ref or CSS selector of the element to describe. Default: the page',
        ),
        depth: z.int().min(1).max(1000).optional().describe('The maximum number of levels of the tree'),
      }),
      run: ({ target, depth }, { page, times, signal }) =>
        unlessDialog(page, async () => {
          const within = target === undefined ? undefined : await findElement(page, target, times, signal)
          const snapshot = await retryOnce(() => takeSnapshot(page, { within, depth }, signal), signal)
          await toolkit.refs.keep?.()
          return [...(await pageLines(page, signal)), snapshot].join('\n')
        }),
    }),
    pageTool(toolkit, {
      name: 'browser_evaluate',
      description: 'Runs a function in the page, and returns its result as JSON',
      inputSchema: z.strictObject({
        ...OPTIONAL_ELEMENT,
        function: z
          .string()
          .min(1)
          .max(100_000)
          .describe('An expression, or a function: () => { ... }, or (element) => { ... } with a target'),
      }),
      run: (input, call) =>
        call.perform(async () => {
          const { page, times, signal } = call
          const element = input.target === undefined ? undefined : await findElement(page, input.target, times, signal)
          return evaluate(page, input.function, element, signal)
        }),
    }),
    pageTool(toolkit, {
      name: 'browser_wait_for',
      description: 'Waits until the page shows a text, until the page no longer shows a text, or for a time',
      inputSchema: z.strictObject({
        time: z.number().min(0).max(MAX_WAIT_S).optional().describe(`How many seconds to wait, at most ${MAX_WAIT_S}`),
        text: z.string().min(1).max(10_000).optional().describe('The text to wait for'),
        textGone: z.string().min(1).max(10_000).optional().describe('The text that the page must no longer show'),
      }),
      run: waitFor,
    }),
    pageTool(toolkit, {
      name: 'browser_take_screenshot',
      description: 'Takes a picture of the page. To act in the page, use browser_snapshot',
      inputSchema: z.strictObject({
        ...OPTIONAL_ELEMENT,
        type: z.enum(['png', 'jpeg', 'webp']).optional().describe('The format. Default: png'),
        fullPage: z.boolean().optional().describe('Whether to show all of the page, not only what the window shows'),
      }),
      run: (input, call) =>
        unlessDialog(call.page, () =>
          readDocument(call.page, mainFrameOf(call.page), call.signal, () => takeScreenshot(input, call)),
        ).catch((error: unknown) => Promise.reject(navigatedError(error) as Error)),
    }),
    pageTool(toolkit, {
      name: 'browser_handle_dialog',
      description: 'Answers the dialog that the page shows',
      isForDialogs: true,
      inputSchema: z.strictObject({
        accept: z.boolean().describe('Whether to accept the dialog'),
        promptText: z.string().max(10_000).optional().describe('The text to enter, if the dialog is a prompt'),
      }),
      run: ({ accept, promptText }, call) => {
        const { page, signal } = call
        const { open } = page.dialogs
        if (open === undefined) throw new BrowserError('NO_DIALOG', 'The page shows no dialog.')
        return call.perform(async () => {
          const params = { accept, ...omitUndefined({ promptText }) }
          await page.debuggee.send('Page.handleJavaScriptDialog', params, { signal })
          return `${accept ? 'Accepted' : 'Dismissed'} the dialog (${open.type}).`
        })
      },
    }),
  ]
}

/** Does the work again, once, if the browser refuses a command. It does so while the page is being replaced. */
async function retryOnce<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ProtocolRefusal)) throw error
    await pause(200, signal)
    return work().catch((again: unknown) => Promise.reject(navigatedError(again) as Error))
  }
}

interface WaitInput {
  readonly time?: number | undefined
  readonly text?: string | undefined
  readonly textGone?: string | undefined
}

async function waitFor({ time, text, textGone }: WaitInput, call: PageCall): Promise<string> {
  const { page, times, signal } = call
  if (time === undefined && text === undefined && textGone === undefined) {
    throw new BrowserError('INVALID_ARGUMENTS', 'arguments: got none, expected time, text or textGone.')
  }
  return call.perform(async () => {
    if (time !== undefined) await pause(time * 1000, signal)
    const isShown = async (wanted: string): Promise<boolean> => {
      const all = [...(await framesOf(page, signal)).values()]
      const shown = await Promise.all(
        all.map((frame) => callIn<boolean[]>(page, frame, SHOWN_TEXTS, [[wanted]], signal).catch(noneWhileLoading)),
      )
      return shown.some(([one]) => one === true)
    }
    for (const [wanted, whether] of [[textGone, false] as const, [text, true] as const]) {
      if (wanted === undefined) continue
      const has = await until(async () => (await isShown(wanted)) === whether, {
        ms: times.waitMs,
        everyMs: 100,
        signal,
      })
      if (has) continue
      const what = whether ? 'The page does not show' : 'The page still shows'
      throw new BrowserError('WAIT_TIMEOUT', `${what} ${JSON.stringify(wanted)} after ${times.waitMs / 1000} s.`)
    }
    return waitedText({ time, text, textGone })
  })
}

function noneWhileLoading(error: unknown): boolean[] {
  if (error instanceof ProtocolRefusal) return []
  // The frame has loaded a page that commands may not use since the frames were listed.
  if (error instanceof BrowserError && error.code === 'PAGE_NOT_ALLOWED') return []
  throw error
}

const waitedText = ({ time, text, textGone }: WaitInput): string =>
  [
    ...(time === undefined ? [] : [`Waited for ${time} s.`]),
    ...(textGone === undefined ? [] : [`The page no longer shows ${JSON.stringify(textGone)}.`]),
    ...(text === undefined ? [] : [`The page shows ${JSON.stringify(text)}.`]),
  ].join(' ')

interface ScreenshotInput {
  readonly target?: string | undefined
  readonly type?: 'png' | 'jpeg' | 'webp' | undefined
  readonly fullPage?: boolean | undefined
}

async function takeScreenshot(
  { target, type = 'png', fullPage = false }: ScreenshotInput,
  { page, times, signal }: PageCall,
): Promise<readonly ToolContent[]> {
  if (fullPage && target !== undefined) {
    throw new BrowserError(
      'INVALID_ARGUMENTS',
      'arguments.fullPage: got true, expected false, because there is a target.',
    )
  }
  const element = target === undefined ? undefined : await findElement(page, target, times, signal)
  if (element !== undefined) await scrollIntoView(page, element, signal)
  const metrics = await page.debuggee.send('Page.getLayoutMetrics', undefined, { signal })
  const { clientWidth, clientHeight } = metrics.cssLayoutViewport
  // Computed from `cssVisualViewport`, because the browser rounds the zoom of `cssLayoutViewport`.
  const { zoom = 1, offsetX, offsetY, ...scrolled } = metrics.cssVisualViewport
  const [pageX, pageY] = [scrolled.pageX - offsetX, scrolled.pageY - offsetY]
  const pixelRatio = await callIn<number>(page, mainFrameOf(page), PIXEL_RATIO, [], signal)
  let area = fullPage ? metrics.cssContentSize : { x: pageX, y: pageY, width: clientWidth, height: clientHeight }
  if (element !== undefined) {
    const box = await boxInWindow(page, element, signal)
    if (box.width < 1 || box.height < 1) throw new BrowserError('ELEMENT_INVISIBLE', `${String(target)} has no size.`)
    area = { ...box, x: pageX + box.x, y: pageY + box.y }
  }
  const isBeyondWindow = fullPage || element !== undefined
  const picture = await takePicture(page, { area, format: type, isBeyondWindow, zoom, pixelRatio }, signal)
  const scaled = picture.scale < 1 ? `, scaled to ${Math.round(picture.scale * 100)} %` : ''
  const what = element === undefined ? (fullPage ? 'the whole page' : 'the window') : String(target)
  return [
    { type: 'text', text: `A picture of ${what}: ${picture.width} x ${picture.height} pixels${scaled}.` },
    { type: 'image', data: picture.data, mimeType: `image/${type}` },
  ]
}
