// The agents of docs/examples, with the SDKs' own test models and real child processes.
import { readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createAiSdkAgent } from '../../../../docs/examples/agents/ai-sdk.js'
import { createPlainAgent } from '../../../../docs/examples/agents/json-schema.js'
import { createLangChainAgent } from '../../../../docs/examples/agents/langchain.js'
import { scriptedAiSdkModel } from '../../../../docs/examples/agents/models/ai-sdk.js'
import { scriptedCompletion } from '../../../../docs/examples/agents/models/json-schema.js'
import { scriptedLangChainModel } from '../../../../docs/examples/agents/models/langchain.js'
import { scriptedOpenAIModel } from '../../../../docs/examples/agents/models/openai-agents.js'
import { script, type LastWord, type Script } from '../../../../docs/examples/agents/models/script.js'
import { createOpenAIAgent } from '../../../../docs/examples/agents/openai-agents.js'
import type { ExampleAgent, TurnEvent } from '../../../../docs/examples/agents/transcript.js'
import type { AgentTasksOptions } from '../../../../src/host/agent-tasks-options.js'
import { readBlocks } from '../../../../scripts/doc-blocks.js'

const agents: Record<string, (script: Script, options?: AgentTasksOptions) => ExampleAgent> = {
  'the AI SDK': (told, options) => createAiSdkAgent(scriptedAiSdkModel(told), options),
  'OpenAI Agents': (told, options) => createOpenAIAgent(scriptedOpenAIModel(told), options),
  LangChain: (told, options) => createLangChainAgent(scriptedLangChainModel(told), options),
  'no SDK': (told, options) => createPlainAgent(scriptedCompletion(told), options),
}

// The output of `printf hello | sha256sum`, and the number of primes below 20000.
const results = ['sha256 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824', '2262 primes below 20000']

const countOf = (result: string, texts: readonly string[]): number => texts.join('\n').split(result).length - 1

/** Fails when turns overlap. */
function expectNoOverlap(transcript: readonly TurnEvent[]): void {
  transcript.forEach(({ type, text }, index) => {
    const before = transcript[index - 1]
    if (type === 'began') expect(before?.type).not.toBe('began')
    else expect(before).toMatchObject({ type: 'began', text })
  })
  expect(transcript.at(-1)?.type).not.toBe('began')
}

const isOfType = (wanted: TurnEvent['type']) => (event: TurnEvent) => event.type === wanted
const textsOf = (events: readonly TurnEvent[]) => events.map(({ text }) => text)

describe.each(Object.entries(agents))('the example agent on %s', (_name, create) => {
  function setUp(told: Script, options?: AgentTasksOptions) {
    const heard: LastWord[] = []
    const agent = create((last) => {
      heard.push(last)
      return told(last)
    }, options)
    onTestFinished(() => agent.dispose())
    return { agent, heard }
  }

  it('A5: launches two programs, goes on, and is woken with each result exactly once', async () => {
    const { agent, heard } = setUp(script)
    const answers = await Promise.all([agent.say('Start both jobs.'), agent.say('What is new meanwhile?')])
    expect(answers).toEqual(['Both are running.', 'Nothing is new, ask me anything.'])
    await agent.onIdle()
    await expect(agent.say('Thanks.')).resolves.toBe('Nothing is new, ask me anything.')

    expectNoOverlap(agent.transcript)
    const turns = agent.transcript.filter(isOfType('ended'))
    expect(turns.slice(0, 2).map(({ from }) => from)).toEqual(['user', 'user'])
    expect(turns.at(-1)).toMatchObject({ from: 'user', text: 'Thanks.' })
    const woken = turns.slice(2, -1)
    expect(woken.length).toBeGreaterThanOrEqual(1)
    for (const { from, answer } of woken) {
      expect(from).toBe('tasks')
      expect(answer).toMatch(/^News from my tasks: /)
    }
    for (const result of results) {
      expect(countOf(result, textsOf(woken))).toBe(1)
      expect(
        countOf(
          result,
          heard.map(({ text }) => text),
        ),
      ).toBe(1)
    }
  })

  it('A5: is woken again after a turn that an overloaded model refused', async () => {
    let refusals = 0
    const overloaded: Script = (last) => {
      if (last.by === 'user' && last.text.includes('System Note') && refusals < 2) {
        refusals += 1
        throw new Error('the model is overloaded')
      }
      return script(last)
    }
    const { agent } = setUp(overloaded, { autoTrigger: { retry: { initialMs: 1 } }, onError: () => undefined })
    await agent.say('Start both jobs.')
    await agent.onIdle()
    expectNoOverlap(agent.transcript)
    expect(agent.transcript.filter(isOfType('failed'))).toHaveLength(2)
    const accepted = textsOf(agent.transcript.filter(isOfType('ended')))
    for (const result of results) expect(countOf(result, accepted)).toBe(1)
  })

  it('A6: answers a user message during a wake-up turn after that turn', async () => {
    const said: Promise<string>[] = []
    const { agent } = setUp((last) => {
      if (last.by === 'user' && last.text.includes('System Note')) said.push(agent.say('Wait, one more thing.'))
      return script(last)
    })
    await agent.say('Start both jobs.')
    await agent.onIdle()
    await Promise.all(said)
    expectNoOverlap(agent.transcript)
    const began = agent.transcript.filter(isOfType('began'))
    began.forEach(({ from }, index) => {
      if (from === 'tasks') expect(began[index + 1]?.text).toBe('Wait, one more thing.')
    })
    const accepted = textsOf(agent.transcript.filter(isOfType('ended')))
    for (const result of results) expect(countOf(result, accepted)).toBe(1)
  })
})

describe('docs/adapters.md', () => {
  const page = readFileSync('docs/adapters.md', 'utf8')
  const excerpts = readBlocks('docs/adapters.md', page).filter(
    ({ language, flags }) => language === 'typescript' && flags.length > 0,
  )

  // `npm run docs:run` runs its `ts` blocks.
  it('has excerpts from the examples that they name', () => {
    expect(excerpts.length).toBeGreaterThanOrEqual(4)
    for (const { flags, text } of excerpts) {
      const source = readFileSync(`docs/${flags[0]}`, 'utf8')
      // An excerpt may leave out lines.
      for (const part of text.split(/^ *\/\/ \.\.\.\n/m)) expect(source).toContain(part.trim())
    }
  })

  it('mentions every adapter that the package exports', () => {
    const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: Record<string, unknown> }
    const adapters = Object.keys(exports).filter((subpath) => subpath.startsWith('./adapters/'))
    expect(adapters).toHaveLength(4)
    for (const subpath of adapters) expect(page).toContain(`agent-tasks${subpath.slice(1)}`)
  })
})
