/** Makes PNG files with a palette. They have a fraction of the bytes, and look the same for pictures of a user interface. */
import { crc32, deflateSync } from 'node:zlib'
import { PNG } from 'pngjs'

const COLOURS = 256

/** Reduces a picture to its most frequent colours. Each other colour becomes the most similar of them. */
export function toSmallPng(png: Buffer): Buffer {
  const { width, height, data } = PNG.sync.read(png)
  const pixels = Array.from({ length: width * height }, (_, at) => data.readUInt32BE(at * 4) >>> 8)
  const counts = new Map<number, number>()
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  const byFrequency = [...counts].sort(([one, times], [other, otherTimes]) => otherTimes - times || one - other)
  const palette = byFrequency.slice(0, COLOURS).map(([colour]) => colour)
  const indices = new Map(byFrequency.map(([colour]) => [colour, nearest(colour, palette)]))
  const rows = Buffer.alloc((width + 1) * height)
  for (const [at, colour] of pixels.entries()) {
    // Each row begins with the number of its filter. 0 means none.
    rows[at + Math.floor(at / width) + 1] = indices.get(colour) ?? 0
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  // 8 bits per pixel, with a palette.
  header.set([8, 3, 0, 0, 0], 8)
  const colours = Buffer.from(palette.flatMap((colour) => [colour >>> 16, (colour >>> 8) & 255, colour & 255]))
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', header),
    chunk('PLTE', colours),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function nearest(colour: number, palette: readonly number[]): number {
  const at = palette.indexOf(colour)
  if (at !== -1) return at
  const distances = palette.map((other) => distance(colour, other))
  return distances.indexOf(Math.min(...distances))
}

function distance(one: number, other: number): number {
  return [16, 8, 0].reduce((sum, shift) => sum + (((one >>> shift) & 255) - ((other >>> shift) & 255)) ** 2, 0)
}

function chunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content])
  const frame = Buffer.alloc(8 + body.length)
  frame.writeUInt32BE(content.length, 0)
  frame.set(body, 4)
  frame.writeUInt32BE(crc32(body), 4 + body.length)
  return frame
}
