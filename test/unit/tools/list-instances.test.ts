// The tool list_instances, on instances that the test lists.
import { expect, it, vi } from 'vitest'
import { createListInstancesTool } from '../../../src/tools/list-instances.js'

const look = { name: 'look', description: 'Looks\n  at it.', inputSchema: { type: 'object' } }

function createSubject() {
  const [ready, settle] = [vi.fn(() => Promise.resolve(undefined)), vi.fn(() => Promise.resolve())]
  const tool = createListInstancesTool(
    {
      none: 'There are no instances',
      ready,
      settle,
      list: () =>
        Promise.resolve([
          { id: 'one', state: 'connected', listTools: () => Promise.resolve([look, { name: 'act' }]) },
          { id: 'two', state: 'failed', error: 'no such program' },
          { id: 'three', state: 'connected', isPaused: true, listTools: () => Promise.reject(new Error('it hangs')) },
        ] as never),
    },
    20_000,
  )
  return { tool, ready, settle }
}

it('all instances are listed with their tools in one line each, without schemas, when they have settled', async () => {
  const { tool, ready, settle } = createSubject()
  const { llmContent, metadata } = await tool.execute({})
  expect(llmContent.split('\n')).toEqual([
    'one (connected): 2 tool(s)',
    '- look: Looks at it.',
    '- act',
    'two (failed): no such program',
    'three (connected, paused): its tools could not be listed: it hangs',
  ])
  expect(metadata).toEqual({
    instances: [
      { id: 'one', state: 'connected', tools: ['look', 'act'] },
      { id: 'two', state: 'failed', error: 'no such program' },
      { id: 'three', state: 'connected, paused', error: 'it hangs' },
    ],
  })
  expect([settle.mock.calls.length, ready.mock.calls.length]).toEqual([1, 0])
})

it('one instance is shown alone, with the schemas of its tools and their whole descriptions, when it is ready', async () => {
  const { tool, ready, settle } = createSubject()
  const { llmContent, metadata } = await tool.execute({ instance_id: 'one' })
  expect(llmContent).toBe('one (connected): 2 tool(s)\n- look: Looks\n  at it.\n  arguments: {"type":"object"}\n- act')
  expect(metadata).toEqual({ instances: [{ id: 'one', state: 'connected', tools: ['look', 'act'] }] })
  expect([settle.mock.calls.length, ready.mock.calls]).toEqual([0, [['one']]])
  const unknown = await tool.execute({ instance_id: 'four' })
  expect(unknown.error).toEqual({
    type: 'parameter_validation',
    message: 'params.instance_id: got "four", expected the ID of an instance. Known: one, two, three.',
  })
})
