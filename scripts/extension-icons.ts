/** Draws the icon of the extension: a list of tasks. */
import { PNG } from 'pngjs'

type Colour = readonly [red: number, green: number, blue: number]

/** A rectangle with round corners. Sizes and positions are fractions of the icon's side. */
interface Shape {
  readonly colour: Colour
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
  readonly radius: number
}

const BLUE: Colour = [11, 92, 173]
const WHITE: Colour = [255, 255, 255]
const AMBER: Colour = [255, 190, 60]
const LINE = 0.12

const SHAPES: readonly Shape[] = [
  { colour: BLUE, left: 0.02, top: 0.02, width: 0.96, height: 0.96, radius: 0.22 },
  ...[WHITE, AMBER, WHITE].flatMap((colour, row) => {
    const line = { top: 0.24 + row * 0.2, height: LINE, radius: LINE / 2, colour }
    return [
      { ...line, left: 0.18, width: LINE },
      { ...line, left: 0.38, width: row === 1 ? 0.3 : 0.44 },
    ]
  }),
]

/** @param size the side of the icon, in pixels */
export function drawIcon(size: number): Buffer {
  const png = new PNG({ width: size, height: size })
  for (let y = 0; y < size; y += 1) {
    for (let x = 0; x < size; x += 1) {
      png.data.set(pixelAt((x + 0.5) / size, (y + 0.5) / size, 1 / size), (y * size + x) * 4)
    }
  }
  return PNG.sync.write(png)
}

function pixelAt(x: number, y: number, pixel: number): number[] {
  let [red, green, blue, alpha] = [0, 0, 0, 0]
  for (const shape of SHAPES) {
    const cover = Math.min(1, Math.max(0, 0.5 - distanceTo(shape, x, y) / pixel))
    if (cover === 0) continue
    // Only the first shape has no other shape below it, so only its edge is transparent.
    const [r, g, b] = shape.colour
    ;[red, green, blue] = alpha === 0 ? [r, g, b] : [mix(red, r, cover), mix(green, g, cover), mix(blue, b, cover)]
    alpha = Math.max(alpha, cover)
  }
  return [red, green, blue, alpha * 255].map(Math.round)
}

const mix = (under: number, over: number, share: number): number => under + (over - under) * share

/** The distance of a point from the edge of a shape. It is negative inside the shape. */
function distanceTo({ left, top, width, height, radius }: Shape, x: number, y: number): number {
  const dx = Math.abs(x - left - width / 2) - (width / 2 - radius)
  const dy = Math.abs(y - top - height / 2) - (height / 2 - radius)
  return Math.hypot(Math.max(dx, 0), Math.max(dy, 0)) + Math.min(Math.max(dx, dy), 0) - radius
}
