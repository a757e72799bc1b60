/**
 * Splits the stdout of an MCP server into its messages, one a line. What is kept of a line is bounded: of one above `MAX_MESSAGE_BYTES` only the ends
 * are kept, which usually contain the id of the request that it answers. That request gets an error, and the server stays usable.
 */
import { deserializeMessage, STDIO_DEFAULT_MAX_BUFFER_SIZE, type JSONRPCMessage } from '@modelcontextprotocol/client'
import { JSON_RPC } from '../../protocol/tool-calls.js'

/** The maximum size of a message, which is that of the official SDK. */
export const MAX_MESSAGE_BYTES = STDIO_DEFAULT_MAX_BUFFER_SIZE

/** How much of a larger message is read, and ignored, before the server is given up. */
const MAX_IGNORED_BYTES = 10 * MAX_MESSAGE_BYTES

/** How many bytes are kept of each end of a larger message. */
const END_BYTES = 256

const LIMIT = `${MAX_MESSAGE_BYTES / 1024 ** 2} MiB`
const TOO_LARGE = `The answer of the server exceeds ${LIMIT}, which is the maximum of a message over stdio. Request less at once.`

/** Servers write the id of a message before its result, or as one of the last fields. */
const ID = String.raw`"id":\s*(\d{1,15}|"[^"\\]{1,100}")`
const VERSION = String.raw`"jsonrpc":\s*"2\.0"\s*`
const ID_AT_START = new RegExp(String.raw`^\s*\{\s*(?:${VERSION},\s*)?${ID}\s*,\s*"(?:result|error)":`)
const ID_AT_END = new RegExp(String.raw`,\s*${ID}\s*(?:,\s*${VERSION})?\}\s*$`)
const RESULT_AT_START = new RegExp(String.raw`^\s*\{\s*(?:${VERSION},\s*)?"(?:result|error)":`)
const METHOD_AT_START = new RegExp(String.raw`^\s*\{\s*(?:${VERSION},\s*)?(?:${ID}\s*,\s*)?"method":`)

export class MessageLines {
  readonly #onMessage: (message: JSONRPCMessage) => void
  readonly #onError: (error: Error) => void
  /** The parts of the current line. When the line is too large: its two ends. */
  #parts: Buffer[] = []
  #bytes = 0

  /** @param onError called for a line that is no message, and for a message that is too large and answers no known request */
  constructor(onMessage: (message: JSONRPCMessage) => void, onError: (error: Error) => void) {
    this.#onMessage = onMessage
    this.#onError = onError
  }

  /** @throws Error for a message that is so large that the server has to be given up */
  read(chunk: Buffer): void {
    let from = 0
    for (let to = chunk.indexOf('\n'); to !== -1; to = chunk.indexOf('\n', from)) {
      this.#add(chunk.subarray(from, to))
      this.#finish()
      from = to + 1
    }
    this.#add(chunk.subarray(from))
  }

  #add(part: Buffer): void {
    this.#bytes += part.length
    this.#parts.push(part)
    if (this.#bytes <= MAX_MESSAGE_BYTES) return
    if (this.#bytes > MAX_IGNORED_BYTES) {
      this.#parts = []
      throw new Error(`it sent a message above ${LIMIT}, which is the maximum over stdio, and did not end it`)
    }
    const [first = part] = this.#parts
    const head = first.length >= END_BYTES ? first : Buffer.concat(this.#parts)
    const rest = Buffer.concat(this.#parts.slice(-2))
    this.#parts = [Buffer.from(head.subarray(0, END_BYTES)), Buffer.from(rest.subarray(-END_BYTES))]
  }

  #finish(): void {
    const parts = this.#parts
    const isTooLarge = this.#bytes > MAX_MESSAGE_BYTES
    this.#parts = []
    this.#bytes = 0
    try {
      this.#onMessage(isTooLarge ? refused(parts) : deserializeMessage(Buffer.concat(parts).toString('utf8')))
    } catch (error) {
      // A line that is no JSON is output of something else.
      if (!(error instanceof SyntaxError)) this.#onError(error as Error)
    }
  }
}

/**
 * The error that a request gets in place of an answer that is too large.
 * @throws SyntaxError for a line that is no JSON
 * @throws UnknownRequestError when the line may be an answer, but it is unknown to which request
 */
function refused(parts: readonly Buffer[]): JSONRPCMessage {
  const [start = '', end = ''] = parts.map(String)
  if (!/^\s*\{/.test(start)) throw new SyntaxError('The line is no message.')
  const message = `it sent a message above ${LIMIT}, which is the maximum over stdio`
  if (METHOD_AT_START.test(start)) throw new Error(message)
  const id = (ID_AT_START.exec(start) ?? (RESULT_AT_START.test(start) ? ID_AT_END.exec(end) : null))?.[1]
  if (id === undefined) throw new UnknownRequestError(message)
  return { jsonrpc: '2.0', id: JSON.parse(id) as string | number, error: { code: JSON_RPC.failed, message: TOO_LARGE } }
}

/** A message is too large, and it is unknown which request waits for it. */
export class UnknownRequestError extends Error {}
