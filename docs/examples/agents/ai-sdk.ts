/** An agent on the AI SDK with background tasks, which is woken when they have ended. */
import type { AgentTasksOptions } from 'agent-tasks'
import { toAiSdkTools } from 'agent-tasks/adapters/ai-sdk'
import { generateText, isStepCount, type LanguageModel, type ModelMessage } from 'ai'
import { createTasks } from './tasks.js'
import { createTurns, type ExampleAgent } from './turns.js'

export function createAiSdkAgent(model: LanguageModel, options?: AgentTasksOptions): ExampleAgent {
  const tasks = createTasks(options)
  const tools = toAiSdkTools(tasks.tools)
  const messages: ModelMessage[] = []

  const turns = createTurns(async (text, abortSignal) => {
    const asked: ModelMessage[] = [...messages, { role: 'user', content: text }]
    const answer = await generateText({
      model,
      tools,
      messages: asked,
      stopWhen: isStepCount(10),
      ...(abortSignal && { abortSignal }),
    })
    // A failed turn leaves no messages behind, and its results are delivered again.
    messages.splice(0, messages.length, ...asked, ...answer.responseMessages)
    return answer.text
  })

  // Wakes an idle agent with its results; they are delivered when the promise resolves.
  tasks.setupAsyncTaskAutoTrigger(turns.isBusy$, (text, { signal }) => turns.take('tasks', text, signal))

  return {
    say: (text) => turns.take('user', text),
    transcript: turns.transcript,
    onIdle: () => tasks.getAsyncTaskManager().onIdle(),
    dispose: () => tasks.dispose(),
  }
}
