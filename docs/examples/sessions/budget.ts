/** A scripted session: a subagent concludes when it has used its budget, and another one, which does not, is stopped. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgentTasks } from 'agent-tasks'

const tasks = createAgentTasks({
  subagents: {
    careful: {
      budget: { tokens: 1000 },
      run: async (_request, context) => {
        const found: string[] = []
        while (!context.wrapUp.aborted) {
          found.push(`finding ${found.length + 1}`)
          context.spend({ tokens: 400, steps: 1 })
          await sleep(10)
        }
        return { final_message: found.join(', ') }
      },
    },
    careless: {
      budget: { steps: 3, wrapUpMs: 100 },
      run: async (_request, context) => {
        while (!context.signal.aborted) {
          context.spend({ steps: 1 })
          await sleep(20)
        }
        return {}
      },
    },
  },
})
const { task, check_async_tasks: check } = tasks.tools

const careful = await task.execute({ subagent_name: 'careful', goal_prompt: 'look for bugs' })
say('the agent reads', careful.llmContent)
assert.match(careful.llmContent, /finding 1, finding 2, finding 3/)

const careless = await task.execute({ subagent_name: 'careless', goal_prompt: 'look for more bugs' })
say('the agent reads', careless.llmContent)
assert.match(careless.llmContent, /Budget exceeded: its limit is 3 steps/)
assert.match(careless.llmContent, /"error_code": "BUDGET_EXCEEDED"/)

const list = await check.execute({})
say('the agent reads', list.llmContent)
assert.match(list.llmContent, /careful - completed .*, spent 1200 tokens, 3 steps/)
assert.equal(tasks.getAsyncTaskManager().spent().tokens, 1200)
await tasks.dispose()

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
