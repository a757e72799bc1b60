/** The prompt `background-tasks`. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { promptText } from '../../../src/mcp/background-tasks-prompt.js'
import { overStdio } from './clients.js'
import { ANONYMOUS } from '../../../src/mcp/callers.js'
import { ALICE, send, setUpApp } from './wire.js'

function setUp() {
  const host = setUpApp()
  onTestFinished(() => host.app.close())
  return host
}

describe('the prompt', () => {
  it('F12: explains to a model when to use which of its tools', async () => {
    const { app } = setUp()
    const { prompts } = (await send(app, ALICE, 'prompts/list')).result as { prompts: { name: string }[] }
    expect(prompts).toEqual([
      {
        name: 'background-tasks',
        title: 'Background tasks',
        description: 'When to run work in the background, and which tool to use for what.',
      },
    ])
    const { messages } = (await send(app, ALICE, 'prompts/get', { name: 'background-tasks' })).result as {
      messages: { role: string; content: { text: string } }[]
    }
    const { tools } = (await send(app, ALICE, 'tools/list')).result as { tools: { name: string }[] }
    expect(messages.map(({ role }) => role)).toEqual(['user'])
    const { text } = messages[0]!.content
    const named = Array.from(text.matchAll(/^- (\w+) /gm), ([, name]) => name)
    expect(named.sort()).toEqual(tools.map(({ name }) => name).sort())
    expect(text.length).toBeLessThan(2000)
  })

  it('names only tools that the client has', () => {
    const text = promptText(['task', 'wait_for_async_tasks'])
    expect(text.match(/^- \w+/gm)).toEqual(['- task', '- wait_for_async_tasks'])
  })

  it('is there for anonymous clients and for clients of 2025, and no other is', async () => {
    const { app } = setUp()
    expect((await send(app, ANONYMOUS, 'prompts/list')).result).toMatchObject({ prompts: [{}] })
    const { ask, initialize } = overStdio()
    expect(await initialize()).toMatchObject({ capabilities: { prompts: {} } })
    expect(await ask(1, 'prompts/list', {})).toMatchObject({ prompts: [{ name: 'background-tasks' }] })
    expect((await send(app, ALICE, 'prompts/get', { name: 'other' })).error).toMatchObject({
      code: -32602,
      message: 'There is no prompt "other".',
    })
  })
})
