/**
 * The agent of the chat servers in this folder, on the AI SDK: one conversation for each user. Turns and waiting messages are in the store, so a server
 * that is killed at any moment loses nothing. A client sends a message again until it sees a turn with its id, and asks for the turns after the last
 * that it has seen.
 */
import { createAgentTasks, type ConversationTurn, type Subagents } from 'agent-tasks'
import { toAiSdkTools } from 'agent-tasks/adapters/ai-sdk'
import { sqliteStore } from 'agent-tasks/store'
import { generateText, isStepCount, type LanguageModel, type ModelMessage } from 'ai'
import { ChatError, type ClientMessage } from './messages.js'
import { turnsOf, TurnStreams, type SeenTurn } from './turns.js'

/** How many messages of a user may wait for their turns. */
const MAX_WAITING = 20

export interface ChatOptions {
  /** The file of the store. */
  readonly file: string
  readonly model: LanguageModel
  readonly subagents: Subagents
  /** The users by their secret tokens. */
  readonly users: ReadonlyMap<string, string>
  /** How many turns of a user are kept. A message that is sent again later than that is a new one. */
  readonly keepTurns?: number
}

export type Chat = ReturnType<typeof createChat>

export function createChat({ file, model, subagents, users, keepTurns = 200 }: ChatOptions) {
  const respond = async ({ conversation, messages, signal }: ConversationTurn): Promise<ModelMessage[]> => {
    const asked = { tools: toAiSdkTools(conversation.tools), messages: messages as ModelMessage[] }
    const answer = await generateText({ model, ...asked, stopWhen: isStepCount(10), abortSignal: signal })
    return answer.responseMessages
  }
  const tasks = createAgentTasks({ store: sqliteStore(file), keepTurns, subagents, respond, maxAsyncTasks: 50 })
  const waiting = new Map<string, number>()
  const streams = new TurnStreams((user) => tasks.conversation(user))
  tasks.manager.transitions$.subscribe(({ kind, to, owner }) => {
    if (kind === 'delivery' && to === 'delivered') streams.wake(owner)
  })

  return {
    tasks,
    /** Ends the streams, and then the host. */
    async dispose(): Promise<void> {
      streams.end()
      await tasks.dispose()
    },
    /** The user of an `Authorization` header. */
    userOf(header: string | null | undefined): string {
      const user = users.get(/^Bearer (.+)$/.exec(header ?? '')?.[1] ?? '')
      if (user === undefined) throw new ChatError(401, 'authorization: expected `Bearer` and the token of a user')
      return user
    },
    /** Resolves when the turn of a message is kept. */
    async send(user: string, { id, text }: ClientMessage): Promise<void> {
      const count = waiting.get(user) ?? 0
      if (count >= MAX_WAITING) throw new ChatError(429, 'message: too many of yours wait')
      waiting.set(user, count + 1)
      try {
        await tasks.conversation(user).send(text, { id })
        streams.wake(user)
      } finally {
        const left = (waiting.get(user) ?? 1) - 1
        if (left > 0) waiting.set(user, left)
        else waiting.delete(user)
      }
    },
    turnsOf: (user: string, after: number): Promise<SeenTurn[]> => turnsOf(tasks.conversation(user), after),
    follow: (user: string, after: number, signal: AbortSignal): AsyncGenerator<SeenTurn> =>
      streams.follow(user, after, signal),
  }
}
