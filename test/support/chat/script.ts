/** What the model of the chat servers says in tests, and what its subagent does. Each text names its user: `@ann m7 work 2`. */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { LanguageModel } from 'ai'
import type { RunContext, Subagents } from 'agent-tasks'
import { scriptedAiSdkModel } from '../../../docs/examples/agents/models/ai-sdk.js'
import type { Script, ScriptedCall } from '../../../docs/examples/agents/models/script.js'

export const USERS = ['ann', 'bob', 'eve'] as const

export const tokenOf = (user: string): string => `token-of-${user}`

/** What a user may write. */
export const KINDS = ['plain', 'work 1', 'work 2', 'work 3', 'collect'] as const

let calls = 0
const call = (name: string, args: Record<string, unknown>): ScriptedCall => ({
  id: `call-${process.pid}-${(calls += 1)}`,
  name,
  args,
})

const script: Script = ({ by, text }) => {
  const [, name = '', count] = /^(@\w+ m\d+) work (\d)$/.exec(text) ?? []
  if (by === 'user' && name !== '') {
    const launches = Array.from({ length: Number(count) }, (_, n) => ({
      subagent_name: 'worker',
      goal_prompt: `${name}.${n}`,
      async: true,
    }))
    return { text: '', calls: launches.map((args) => call('task', args)) }
  }
  if (by === 'user' && / collect$/.test(text)) {
    return { text: '', calls: [call('wait_for_async_tasks', { timeout_seconds: 1 })] }
  }
  return { text: `${by}: ${text}`, calls: [] }
}

/** A model that takes a while, as models do. */
export function pacedModel(): LanguageModel {
  const model = scriptedAiSdkModel(script)
  const generate = model.doGenerate
  model.doGenerate = async (options) => {
    await pause(5 + Math.random() * 40)
    return generate(options)
  }
  return model
}

/** The tasks whose runs have begun, and their goals, one in each line. */
export const begunIn = (folder: string): string => join(folder, 'begun')

/** What a result contains of its task. */
export const resultOf = (taskId: string): string => `result of ${taskId}.`

export const subagentsIn = (folder: string): Subagents => ({
  worker: {
    run: async ({ goal }: { goal: string }, { taskId }: RunContext) => {
      appendFileSync(begunIn(folder), `${taskId} ${goal}\n`)
      await pause(20 + Math.random() * 200)
      return `${goal}: ${resultOf(taskId)}`
    },
    retry: { attempts: 1000, on: ['interrupted'] },
  },
})
