/** What a client sends to the chat servers in this folder, what it may send, and what it gets when that is wrong. */
import { z } from 'zod'

/** The maximum size of a request, in bytes. */
export const MAX_BYTES = 16_384

/** A message of a client. The client chooses its id, and sends it again with the same id until it has seen the answer. */
const messageSchema = z.strictObject({ id: z.string().min(1).max(100), text: z.string().min(1).max(4000) })
const afterSchema = z.coerce.number({ error: 'expected the `seq` of a turn' }).int().min(0)

export type ClientMessage = z.infer<typeof messageSchema>

/** An error that the client may read. Its message begins with the field. */
export class ChatError extends Error {
  constructor(
    readonly status: 400 | 401 | 404 | 409 | 413 | 429 | 500 | 503,
    message: string,
  ) {
    super(message)
  }
}

function check<T>(schema: z.ZodType<T>, field: string, value: unknown): T {
  const { success, data, error } = schema.safeParse(value)
  if (success) return data
  const [issue] = error.issues
  throw new ChatError(400, `${[...(issue?.path ?? [])].join('.') || field}: ${issue?.message ?? 'not valid'}`)
}

export const checkMessage = (value: unknown): ClientMessage => check(messageSchema, 'message', value)

export function parseMessage(json: string): ClientMessage {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    throw new ChatError(400, 'message: expected JSON')
  }
  return checkMessage(value)
}

/** Reads the message in the body of a request, and no more than its maximum size. */
export async function readMessage({ body }: Request): Promise<ClientMessage> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += (chunk as Uint8Array).byteLength
    if (size > MAX_BYTES) throw new ChatError(413, `message: expected at most ${MAX_BYTES} bytes`)
    chunks.push(chunk as Uint8Array)
  }
  return parseMessage(Buffer.concat(chunks).toString())
}

/** The number of the last turn that the client has seen. */
export const readAfter = (value: string | null | undefined): number => check(afterSchema, 'after', value ?? 0)

/** What a client may know about an error. */
export function toChatError(error: unknown): ChatError {
  if (error instanceof ChatError) return error
  const { code, field } = error as { code?: unknown; field?: unknown }
  if (field === 'options.id') return new ChatError(409, 'id: was used for another text')
  if (code === 'INPUT_LIMIT') return new ChatError(429, 'message: too many of yours wait')
  if (code === 'DISPOSED') return new ChatError(503, 'message: the server ends; send it again')
  console.error(error)
  return new ChatError(500, 'message: its turn has failed; send it again')
}
