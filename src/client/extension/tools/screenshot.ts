/** Takes pictures of a page that are small enough for a result. */
import type { Protocol } from 'devtools-protocol'
import { BrowserError } from '../debuggee.js'
import type { Page } from './page.js'
import { within } from './waiting.js'

export interface Picture {
  /** The picture, as base64. */
  readonly data: string
  readonly width: number
  readonly height: number
  /** Less than 1 if the picture was scaled down. */
  readonly scale: number
}

/** The maximum size of a picture, in characters of base64. The whole message then fits into a WebSocket frame of 1 MiB. */
const MAX_CHARS = 900_000
/** The maximum length of the longer side, in pixels. Models do not use larger pictures. */
const MAX_SIDE = 2000
/** How long the browser may take to paint, in ms. It does not paint a tab that is not visible. */
const PAINT_MS = 10_000
/** The smallest scale. A smaller picture would be useless. */
const MIN_SCALE = 0.1

export interface PictureOptions {
  /** The part of the page to show, in CSS pixels. */
  readonly area: Omit<Protocol.Page.Viewport, 'scale'>
  readonly format: 'png' | 'jpeg' | 'webp'
  /** Whether the area may reach beyond what the window shows. */
  readonly isBeyondWindow: boolean
  /** The zoom of the browser. With 2, a CSS pixel is twice as large as without zoom. */
  readonly zoom: number
  /** The number of screen pixels in a CSS pixel. */
  readonly pixelRatio: number
}

/**
 * Takes a picture with one pixel for each CSS pixel. Scales it down if it is too large.
 * @throws BrowserError `RESULT_TOO_LARGE` or `PAGE_HANGS`
 */
export async function takePicture(
  { debuggee }: Page,
  { area, format, isBeyondWindow, zoom, pixelRatio }: PictureOptions,
  signal: AbortSignal,
): Promise<Picture> {
  const { width, height } = area
  const unzoomed = { x: area.x * zoom, y: area.y * zoom, width: width * zoom, height: height * zoom }
  let scale = Math.min(1, MAX_SIDE / Math.max(width, height))
  while (scale >= MIN_SCALE) {
    const params = {
      format,
      clip: { ...unzoomed, scale: scale / pixelRatio },
      captureBeyondViewport: isBeyondWindow,
      ...(format !== 'png' && { quality: 80 }),
    }
    const { data } = await within(PAINT_MS, notPainted, signal, (limited) =>
      debuggee.send('Page.captureScreenshot', params, { signal: limited }),
    )
    if (data.length <= MAX_CHARS) {
      return { data, scale, width: Math.round(width * scale), height: Math.round(height * scale) }
    }
    scale *= Math.min(0.8, Math.sqrt(MAX_CHARS / data.length))
  }
  throw new BrowserError(
    'RESULT_TOO_LARGE',
    `A picture of ${Math.round(width)} x ${Math.round(height)} pixels is too large. Take a picture of the window or of an element, or use type "jpeg".`,
  )
}

const notPainted = (): Error =>
  new BrowserError(
    'PAGE_HANGS',
    'The browser does not paint the page, because its tab is not shown. Select the tab with browser_tabs.',
  )
