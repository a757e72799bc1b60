import { expect, it, onTestFinished } from 'vitest'
import { toJsonSchemaTools } from '../../../../src/tools/adapters/json-schema.js'
import { createAgentTasks } from '../../../../src/host/agent-tasks.js'
import type { AdapterSubject } from './adapter-subject.js'
import { describeAdapter } from './adapter-suite.js'

const subject: AdapterSubject = {
  takesText: true,
  rejectsAborted: false,
  turn: async (neutral, calls, signal, options) => {
    const { tools, call } = toJsonSchemaTools(neutral, options)
    const results = calls.map(async ({ id, name, args }) => {
      const { llmContent, error } = await call(name, args, { signal, toolCallId: id })
      return { id, text: llmContent, isError: error !== undefined }
    })
    return { offered: tools, shown: await Promise.all(results), end: 'done' }
  },
}

describeAdapter('plain JSON Schema', subject)

function setUp() {
  const agent = createAgentTasks()
  onTestFinished(() => agent.dispose())
  return toJsonSchemaTools(agent.tools)
}

it('is plain JSON data', () => {
  const { tools } = setUp()
  expect(JSON.parse(JSON.stringify(tools))).toEqual(tools)
})

it('accepts arguments as text, and an empty text or undefined as no arguments', async () => {
  const { call } = setUp()
  for (const args of ['{"action":"list"}', '', '  ', undefined, null, {}]) {
    await expect(call('check_async_tasks', args)).resolves.toMatchObject({ llmContent: 'No async tasks.' })
  }
})

it.each([['{'], ['[]'], ['7'], ['"list"'], [[]], [7]])('rejects %j as arguments', async (args) => {
  const { call } = setUp()
  const { error, llmContent } = await call('check_async_tasks', args)
  expect(error?.type).toBe('parameter_validation')
  expect(llmContent).toMatch(/^Invalid parameters for check_async_tasks: params: got .*, expected .*object/)
})

it.each(['nothing', 'constructor', '__proto__', ''])(
  'answers a call of %j with the names that there are',
  async (name) => {
    const { call, tools } = setUp()
    const { error, llmContent } = await call(name, {})
    expect(error?.type).toBe('unknown_tool')
    expect(llmContent).toContain(`Known: ${tools.map((tool) => tool.name).join(', ')}.`)
  },
)
