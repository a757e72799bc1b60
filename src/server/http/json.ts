/** Reads and writes the JSON of requests and frames. Input is limited in size and depth. Output can be any value. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { toPlainData } from '../../data/plain-data.js'

/** Writes JSON. A value that JSON cannot represent is written as a readable copy; the result of a tool may be such a value. */
export function toJson(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    return JSON.stringify(toPlainData(value))
  }
}

export const JSON_TYPE = { 'content-type': 'application/json' }

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { ...JSON_TYPE, ...headers })
  response.end(toJson(body))
}

/**
 * Reads the body of a request as text.
 *
 * A body that is too large is read to its end and dropped, so that the client gets the answer and can use the connection again. If the body exceeds the
 * limit by more than MAX_DROPPED_BYTES, reading stops: then `request.complete` is false, and the caller must close the connection.
 * @returns undefined when the body is larger than `maxBytes`
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const mostRead = maxBytes + MAX_DROPPED_BYTES
    let size = 0
    const finish = (text: string | undefined): void => {
      request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone)
      resolve(text)
    }
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      if (size <= maxBytes) chunks.push(chunk)
      else chunks.length = 0
      if (size > mostRead) finish(undefined)
    }
    const onEnd = (): void => finish(size > maxBytes ? undefined : Buffer.concat(chunks).toString())
    const onGone = (): void => reject(new Error('The client went away before its request was complete.'))
    if (Number(request.headers['content-length'] ?? 0) > mostRead) finish(undefined)
    else request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone)
  })
}

/** How much of a body that is too large is read and dropped, in bytes. */
const MAX_DROPPED_BYTES = 16 * 1024 * 1024
