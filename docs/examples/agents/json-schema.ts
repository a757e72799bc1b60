/** The same agent without an SDK: with a function that completes a conversation over any API. */
import type { AgentTasksOptions } from 'agent-tasks'
import { createTurns } from 'agent-tasks/parts'
import { toJsonSchemaTools, type JsonSchemaTool } from 'agent-tasks/adapters/json-schema'
import { createTasks } from './tasks.js'
import { recorded, type ExampleAgent, type TurnEvent } from './transcript.js'

export interface Message {
  readonly role: 'user' | 'assistant' | 'tool'
  readonly content: string
  /** The tool calls of an assistant message, with arguments as JSON text. */
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
  /** The id of the call that a tool message answers. */
  readonly callId?: string
}

/** Requests the next message from a model. */
export type Complete = (
  messages: readonly Message[],
  tools: readonly JsonSchemaTool[],
  signal: AbortSignal,
) => Promise<Message>

export function createPlainAgent(complete: Complete, options?: AgentTasksOptions): ExampleAgent {
  const tasks = createTasks(options)
  const { tools, call } = toJsonSchemaTools(tasks.tools)
  let messages: readonly Message[] = []
  const transcript: TurnEvent[] = []

  const turns = createTurns(
    recorded(transcript, async (text, signal) => {
      const asked: Message[] = [...messages, { role: 'user', content: text }]
      for (;;) {
        const reply = await complete(asked, tools, signal)
        asked.push(reply)
        if (reply.calls === undefined || reply.calls.length === 0) break
        for (const { id, name, arguments: args } of reply.calls) {
          const { llmContent } = await call(name, args, { signal, toolCallId: id })
          asked.push({ role: 'tool', content: llmContent, callId: id })
        }
      }
      messages = asked
      return asked.at(-1)?.content ?? ''
    }),
  )

  tasks.setupAsyncTaskAutoTrigger(turns.isBusy$, turns.triggerAgentTurn)

  return {
    say: (text) => turns.take(text),
    transcript,
    onIdle: () => tasks.manager.onIdle(),
    dispose: () => tasks.dispose(),
  }
}
