/** Pictures of a page that fit into a result. */
import type { Protocol } from 'devtools-protocol'
import { BrowserError } from '../debuggee.js'
import type { Page } from './page.js'
import { within } from './waiting.js'

export interface Picture {
  /** Base64. */
  readonly data: string
  readonly width: number
  readonly height: number
  /** Below 1 when it was scaled down. */
  readonly scale: number
}

type Area = Omit<Protocol.Page.Viewport, 'scale'>

/** The maximum size, in characters of base64. With the rest of a message it fits into a frame of 1 MiB. */
const MAX_CHARS = 900_000
/** The longest side, in pixels. Models do not use more. */
const MAX_SIDE = 2000
/** How long the browser may take, in ms. It does not paint invisible tabs. */
const PAINT_MS = 10_000
/** A picture that is scaled down further is useless. */
const MIN_SCALE = 0.1

export interface PictureOptions {
  /** In CSS pixels of the page. */
  readonly area: Area
  readonly format: 'png' | 'jpeg' | 'webp'
  /** Whether the area may lie outside of the window. */
  readonly isBeyondWindow: boolean
  /** CSS pixels are this many times larger than without the zoom of the browser. */
  readonly zoom: number
  /** The number of screen pixels in a CSS pixel. */
  readonly pixelRatio: number
}

/** Takes a picture with one pixel for each CSS pixel. @throws BrowserError `RESULT_TOO_LARGE`, `PAGE_HANGS` */
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
    `A picture of ${Math.round(width)} x ${Math.round(height)} pixels is too large. Take one of the window, of an element, or with type "jpeg".`,
  )
}

const notPainted = (): Error =>
  new BrowserError('PAGE_HANGS', 'The browser paints no picture: the tab is not shown. Select it with browser_tabs.')
