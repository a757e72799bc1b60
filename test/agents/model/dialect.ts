/** How one API writes requests and answers. */
import type { Json } from './json.js'
import type { Answer, ModelRequest } from './script.js'

export interface Dialect {
  readonly path: RegExp
  /** @param path the path of the request: in some APIs it names the model, or asks for a stream */
  read(body: Json, path: string): ModelRequest
  /** The answer as one value. */
  whole(answer: Answer, request: ModelRequest, id: string): Json
  /** The answer as server-sent events. */
  events(answer: Answer, request: ModelRequest, id: string): readonly string[]
  error(status: number, message: string): Json
}
