/** An agent on the AI SDK with background tasks, which is woken when they have ended. */
import type { AgentTasksOptions } from 'agent-tasks'
import { createTurns } from 'agent-tasks/parts'
import { toAiSdkTools } from 'agent-tasks/adapters/ai-sdk'
import { generateText, isStepCount, type LanguageModel, type ModelMessage } from 'ai'
import { createTasks } from './tasks.js'
import { recorded, type ExampleAgent, type TurnEvent } from './transcript.js'

export function createAiSdkAgent(model: LanguageModel, options?: AgentTasksOptions): ExampleAgent {
  const tasks = createTasks(options)
  const tools = toAiSdkTools(tasks.tools)
  const messages: ModelMessage[] = []
  const transcript: TurnEvent[] = []

  const turns = createTurns(
    recorded(transcript, async (text, abortSignal) => {
      const asked: ModelMessage[] = [...messages, { role: 'user', content: text }]
      const answer = await generateText({ model, tools, messages: asked, stopWhen: isStepCount(10), abortSignal })
      // A failed turn leaves no messages behind, and its results are delivered again.
      messages.splice(0, messages.length, ...asked, ...answer.responseMessages)
      return answer.text
    }),
  )

  // Wakes an idle agent with its results; they are delivered when the promise resolves.
  tasks.setupAsyncTaskAutoTrigger(turns.isBusy$, turns.triggerAgentTurn)

  return {
    say: (text) => turns.take(text),
    transcript,
    onIdle: () => tasks.manager.onIdle(),
    dispose: () => tasks.dispose(),
  }
}
