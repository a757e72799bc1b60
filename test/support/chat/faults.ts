/** Chats with a planted fault, which the judge must find. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { createAgentTasks, type ConversationTurn } from 'agent-tasks'
import { toAiSdkTools } from 'agent-tasks/adapters/ai-sdk'
import { sqliteStore, type StoreContents } from 'agent-tasks/store'
import { generateText, isStepCount, type ModelMessage } from 'ai'
import { createChat, type Chat, type ChatOptions } from '../../../docs/examples/chat/chat.js'
import type { SeenTurn } from '../../../docs/examples/chat/turns.js'

export const FAULTS = ['own file', 'early answer'] as const
export type Fault = (typeof FAULTS)[number]

type KeptTurn = StoreContents['turns'][number]

/** How long after its turn the faulty host writes or reads, in ms. */
const DELAY_MS = 150

export const faultyChat = (fault: Fault, options: ChatOptions): Chat =>
  fault === 'own file' ? ownFileChat(options) : earlyChat(options)

/** Answers before the message is stored. */
function earlyChat(options: ChatOptions): Chat {
  const chat = createChat(options)
  return {
    ...chat,
    send: async (...message) => {
      setTimeout(() => {
        chat.send(...message).catch(() => undefined)
      }, DELAY_MS)
    },
  }
}

const ownFileOf = (file: string): string => `${file}-turns`

export function readOwnFile(file: string): KeptTurn[] {
  const own = ownFileOf(file)
  if (!existsSync(own)) return []
  const lines = readFileSync(own, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as KeptTurn)
}

/** Keeps the messages in a file of its own, a little after the turn that has delivered results. */
function ownFileChat({ file, model, subagents, users }: ChatOptions): Chat {
  const ids = new Map<string, string>()
  const turnsOf = (user: string): KeptTurn[] => readOwnFile(file).filter(({ owner }) => owner === user)
  const respond = async ({ conversation, text, signal }: ConversationTurn): Promise<void> => {
    const owner = conversation.id
    const asked = { role: 'user', content: text } as const
    const kept = turnsOf(owner)
    const messages = [...kept.flatMap((turn) => turn.messages as ModelMessage[]), asked]
    const tools = toAiSdkTools(conversation.tools)
    const answer = await generateText({
      model,
      tools,
      messages,
      stopWhen: isStepCount(10),
      abortSignal: signal,
    })
    const inputId = ids.get(text)
    setTimeout(() => {
      const seq = turnsOf(owner).length + 1
      const turn = {
        owner,
        seq,
        ...(inputId !== undefined && { inputId }),
        messages: [asked, ...answer.responseMessages],
      }
      appendFileSync(ownFileOf(file), `${JSON.stringify(turn)}\n`)
    }, DELAY_MS)
  }
  const tasks = createAgentTasks({
    store: sqliteStore(file),
    keepTurns: 0,
    subagents,
    respond,
    maxAsyncTasks: 50,
  })
  const seenOf = (user: string, after: number): SeenTurn[] =>
    turnsOf(user)
      .filter(({ seq }) => seq > after)
      .map(({ seq, inputId }) => ({
        seq,
        ...(inputId !== undefined && { id: inputId }),
        texts: [],
      }))
  const sent = new Map<string, Promise<unknown>>()
  return {
    tasks: tasks as unknown as Chat['tasks'],
    dispose: () => tasks.dispose(),
    userOf: (header) => users.get(header?.replace('Bearer ', '') ?? '') ?? '',
    send: async (user, { id, text }) => {
      if (turnsOf(user).some(({ inputId }) => inputId === id)) return
      ids.set(text, id)
      const turn = sent.get(text) ?? tasks.conversation(user).send(text)
      sent.set(text, turn)
      await turn
    },
    turnsOf: (user, after) => Promise.resolve(seenOf(user, after)),
    async *follow(user, after, signal) {
      let seen = after
      while (!signal.aborted) {
        for (const turn of seenOf(user, seen)) {
          seen = turn.seq
          yield turn
        }
        await pause(20)
      }
    },
  }
}
