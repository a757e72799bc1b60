/** A scripted session: an agent that streams its answers. A stream that breaks fails its turn, and the results of that turn are delivered again. */
import assert from 'node:assert/strict'
import { createAgentTasks } from 'agent-tasks'
import { createTurns } from 'agent-tasks/parts'
import { toAiSdkTools } from 'agent-tasks/adapters/ai-sdk'
import { isStepCount, simulateReadableStream, streamText, type ModelMessage } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'

const tasks = createAgentTasks({
  subagents: { archivist: ({ goal }) => `9 reports about ${goal}` },
  autoTrigger: { retry: { initialMs: 10 } },
  onError: (error) => say('a turn failed', (error as Error).message),
})
const tools = toAiSdkTools(tasks.tools)
const messages: ModelMessage[] = []
const model = scriptedModel()

const turns = createTurns(async (text, abortSignal) => {
  const asked: ModelMessage[] = [...messages, { role: 'user', content: text }]
  const answer = streamText({ model, tools, messages: asked, stopWhen: isStepCount(10), abortSignal, onError: ignore })
  for await (const part of answer.stream) {
    if (part.type === 'text-delta') process.stdout.write(part.text)
    // The stream does not throw. Without these two lines, the beginning of an answer would count as the answer.
    if (part.type === 'error') throw part.error
    if (part.type === 'abort') throw new Error(part.reason ?? 'The stream was aborted.')
  }
  messages.splice(0, messages.length, ...asked, ...(await answer.responseMessages))
  return answer.text
})
tasks.setupAsyncTaskAutoTrigger(turns.isBusy$, turns.triggerAgentTurn)

await turns.take('Search the archive for storms.')
await tasks.manager.onIdle()
// The first turn with the result broke, and left nothing behind. The second one has the same result.
assert.equal(model.doStreamCalls.length, 4)
assert.equal(messages.filter(({ role }) => role === 'user').length, 2)
assert.match(JSON.stringify(messages.at(-2)), /9 reports about storms/)
assert.match(JSON.stringify(messages.at(-1)), /There are 9 reports\./)
await tasks.dispose()

/** Launches a task, and reads its result. The first stream about the result breaks in the middle of a sentence. */
function scriptedModel(): MockLanguageModelV4 {
  const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 }
  const text = (delta: string) => [
    { type: 'text-start', id: 't' } as const,
    { type: 'text-delta', id: 't', delta } as const,
  ]
  const end = (unified: 'stop' | 'tool-calls') =>
    [
      {
        type: 'finish',
        usage: { inputTokens: tokens, outputTokens: tokens },
        finishReason: { unified, raw: undefined },
      },
    ] as const
  const input = JSON.stringify({ subagent_name: 'archivist', goal_prompt: 'storms', async: true })
  const steps = [
    [{ type: 'tool-call', toolCallId: 'c1', toolName: 'task', input } as const, ...end('tool-calls')],
    [...text('I am searching.\n'), { type: 'text-end', id: 't' } as const, ...end('stop')],
    [...text('There are '), { type: 'error', error: new Error('connection reset') } as const],
    [...text('There are 9 reports.\n'), { type: 'text-end', id: 't' } as const, ...end('stop')],
  ]
  return new MockLanguageModelV4({
    doStream: steps.map((chunks) => ({ stream: simulateReadableStream({ chunks: [...chunks] }) })),
  })
}

function ignore(): void {
  // The loop throws the error. By default, the SDK writes it to the console as well.
}

function say(who: string, text: string): void {
  console.log(`\n--- ${who}\n${text}\n`)
}
