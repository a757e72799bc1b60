/** Reads a request's body once, and no more of it than is allowed; the routes find it as text and as JSON. */
import type { MiddlewareHandler } from 'hono'
import type { RestError } from '../protocol/rest.js'
import type { ServerConfig } from '../protocol/server-config.js'
import { parseJson } from './json.js'

export function boundedBody({ limits: { bodyBytes, nesting } }: ServerConfig): MiddlewareHandler {
  const tooLarge: RestError = {
    error: `The body is larger than ${bodyBytes} bytes`,
    code: 'BODY_TOO_LARGE',
    details: { maxBytes: bodyBytes },
  }
  return async (c, next) => {
    if (c.req.method !== 'POST') return next()
    const text =
      Number(c.req.header('content-length') ?? 0) > bodyBytes ? undefined : await readText(c.req.raw.body, bodyBytes)
    if (text === undefined) return c.json(tooLarge, 413)
    c.req.bodyCache.text = Promise.resolve(text) as never
    if (text !== '') {
      const parsed = parseJson(text, nesting)
      // A body that is no JSON by its own word is refused for that by the route.
      if ('value' in parsed) c.req.bodyCache.json = Promise.resolve(parsed.value)
      else if (isJson(c.req.header('content-type'))) {
        return c.json({ error: parsed.message, code: parsed.code } satisfies RestError, 400)
      }
    }
    return next()
  }
}

const isJson = (contentType: string | undefined): boolean => contentType === undefined || /json/i.test(contentType)

/** Undefined when there is more than `most` bytes of it. */
async function readText(body: ReadableStream<Uint8Array> | null, most: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    // Leaving the loop cancels the stream.
    if (size > most) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
