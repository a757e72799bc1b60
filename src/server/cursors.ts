/**
 * Cursors of lists: opaque to whoever pages, and good only for the server that gave them, because places are counted anew when another
 * starts. A cursor names a place in the order of submission, not a task, so that the page after it does not depend on whether that task is
 * still known.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

export interface Cursors {
  write(place: number): string
  /** Undefined for what `write` of these cursors did not make. */
  read(cursor: string): number | undefined
}

const SEAL_BYTES = 9

export function createCursors(): Cursors {
  const key = randomBytes(32)
  const seal = (place: Buffer): Buffer => createHmac('sha256', key).update(place).digest().subarray(0, SEAL_BYTES)
  return {
    write: (place) => {
      const bytes = Buffer.alloc(6)
      bytes.writeUIntBE(place, 0, 6)
      return Buffer.concat([seal(bytes), bytes]).toString('base64url')
    },
    read: (cursor) => {
      const bytes = Buffer.from(cursor, 'base64url')
      if (bytes.length !== SEAL_BYTES + 6) return undefined
      const place = bytes.subarray(SEAL_BYTES)
      return timingSafeEqual(seal(place), bytes.subarray(0, SEAL_BYTES)) ? place.readUIntBE(0, 6) : undefined
    },
  }
}
