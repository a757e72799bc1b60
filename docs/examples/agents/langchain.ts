/** The same agent on LangChain, with the agent loop written out. */
import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { HumanMessage, type BaseMessage } from '@langchain/core/messages'
import type { AgentTasksOptions } from 'agent-tasks'
import { createTurns } from 'agent-tasks/parts'
import { toLangChainTools } from 'agent-tasks/adapters/langchain'
import { createTasks } from './tasks.js'
import { recorded, type ExampleAgent, type TurnEvent } from './transcript.js'

export function createLangChainAgent(model: BaseChatModel, options?: AgentTasksOptions): ExampleAgent {
  const tasks = createTasks(options)
  const tools = toLangChainTools(tasks.tools)
  const bound = model.bindTools?.(tools)
  if (bound === undefined) throw new Error('This chat model calls no tools.')
  let messages: readonly BaseMessage[] = []
  const transcript: TurnEvent[] = []

  const turns = createTurns(
    recorded(transcript, async (text, signal) => {
      const config = { signal }
      const asked: BaseMessage[] = [...messages, new HumanMessage(text)]
      for (;;) {
        const reply = await bound.invoke(asked, config)
        asked.push(reply)
        const calls = reply.tool_calls ?? []
        if (calls.length === 0) break
        for (const call of calls) {
          const tool = tools.find(({ name }) => name === call.name)
          if (tool === undefined) throw new Error(`The model called ${call.name}, which there is not.`)
          asked.push((await tool.invoke({ ...call, type: 'tool_call' }, config)) as BaseMessage)
        }
      }
      messages = asked
      return asked.at(-1)?.text ?? ''
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
