/** What clients see of the turns of a conversation, and the streams on which they get them. */
import type { Conversation } from 'agent-tasks'
import type { ModelMessage } from 'ai'
import { ChatError } from './messages.js'

/** How many streams of a user, and of all users, may be open. */
const MAX_OF_USER = 5
const MAX_STREAMS = 1000

/** What a client sees of a turn. `id` is that of the message that the turn answers. A turn for results has none. */
export interface SeenTurn {
  readonly seq: number
  readonly id?: string
  readonly texts: readonly string[]
}

export async function turnsOf(conversation: Conversation, after: number): Promise<SeenTurn[]> {
  const turns = await conversation.turns()
  return turns
    .filter(({ seq }) => seq > after)
    .map(({ seq, messageId, messages }) => {
      const answers = (messages as ModelMessage[]).slice(1)
      return { seq, ...(messageId !== undefined && { id: messageId }), texts: answers.flatMap(textsOf) }
    })
}

/** What an assistant says; tool calls and their results are left out. */
function textsOf({ role, content }: ModelMessage): string[] {
  if (role !== 'assistant') return []
  if (typeof content === 'string') return [content]
  return content.flatMap((part) => (part.type === 'text' && part.text !== '' ? [part.text] : []))
}

export class TurnStreams {
  /** The streams that are open, and their users. */
  readonly #open = new Map<() => void, string>()
  #isEnded = false

  constructor(readonly conversation: (user: string) => Conversation) {}

  /** The turns of a user after one, and then each further one, until the signal aborts. */
  follow(user: string, after: number, signal: AbortSignal): AsyncGenerator<SeenTurn> {
    const ofUser = [...this.#open.values()].filter((of) => of === user).length
    if (ofUser >= MAX_OF_USER) throw new ChatError(429, 'authorization: this user has too many streams')
    if (this.#open.size >= MAX_STREAMS) throw new ChatError(503, 'path: the server has too many streams')
    let hasNews = true
    let goOn = (): void => undefined
    const look = (): void => {
      hasNews = true
      goOn()
    }
    this.#open.set(look, user)
    const close = (): void => {
      if (this.#open.delete(look)) goOn()
    }
    signal.addEventListener('abort', close, { once: true })
    const isOver = (): boolean => this.#isEnded || signal.aborted
    const read = (seen: number): Promise<SeenTurn[]> => turnsOf(this.conversation(user), seen)
    return (async function* () {
      for (let seen = after; !isOver();) {
        if (!hasNews) await new Promise<void>((resolve) => (goOn = resolve))
        hasNews = false
        for (const turn of isOver() ? [] : await read(seen)) {
          seen = turn.seq
          yield turn
        }
      }
    })()
  }

  /** Lets the streams of a user look for turns that were kept. */
  wake(user: string): void {
    for (const [look, of] of this.#open) if (of === user) look()
  }

  end(): void {
    this.#isEnded = true
    for (const look of this.#open.keys()) look()
  }
}
