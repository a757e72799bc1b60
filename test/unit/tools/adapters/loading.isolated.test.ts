import { afterEach, expect, it, vi } from 'vitest'

const sdks = {
  'ai-sdk': ['ai'],
  'openai-agents': ['@openai/agents'],
  langchain: ['@langchain/core/tools', '@langchain/core/messages'],
  'json-schema': [],
}

type Adapter = keyof typeof sdks

const load: Record<Adapter, () => Promise<object>> = {
  'ai-sdk': () => import('../../../../src/tools/adapters/ai-sdk.js'),
  'openai-agents': () => import('../../../../src/tools/adapters/openai-agents.js'),
  langchain: () => import('../../../../src/tools/adapters/langchain.js'),
  'json-schema': () => import('../../../../src/tools/adapters/json-schema.js'),
}

const names = Object.keys(sdks) as Adapter[]

/** Mocks packages as not installed. */
function uninstall(packages: readonly string[]): void {
  vi.resetModules()
  for (const name of packages) {
    vi.doMock(name, () => {
      throw new Error(`${name} is not installed`)
    })
  }
}

afterEach(() => {
  for (const name of Object.values(sdks).flat()) vi.doUnmock(name)
  vi.resetModules()
})

it.each(names)('the adapter %s loads with only its own SDK installed', async (name) => {
  uninstall(Object.entries(sdks).flatMap(([adapter, packages]) => (adapter === name ? [] : packages)))
  await expect(load[name]()).resolves.toBeTypeOf('object')
})

it.each(names.filter((name) => sdks[name].length > 0))('the adapter %s needs its own SDK', async (name) => {
  uninstall(sdks[name])
  await expect(load[name]()).rejects.toThrow()
})

it('everything else loads without an SDK', async () => {
  uninstall(Object.values(sdks).flat())
  const modules = await Promise.all([import('../../../../src/index.js'), import('../../../../src/tools/index.js')])
  expect(modules).toHaveLength(2)
})

it('the adapter for LangChain refuses a version that would drop the arguments of every call', async () => {
  vi.resetModules()
  // Before 0.3.58, `tool` recognises only schemas of zod 3, and makes a tool of one text for any other schema.
  vi.doMock('@langchain/core/tools', async (original) => {
    const { DynamicTool, ...rest } = await original<typeof import('@langchain/core/tools')>()
    return { ...rest, tool: (func: never, fields: object) => new DynamicTool({ ...fields, func } as never) }
  })
  const { toLangChainTools } = await import('../../../../src/tools/adapters/langchain.js')
  const { defineTool } = await import('../../../../src/tools/tool.js')
  const { z } = await import('zod')
  const spy = defineTool({ name: 'spy', description: 'd', inputSchema: z.strictObject({}), run: () => ({}) as never })
  expect(() => toLangChainTools({ spy })).toThrow(
    expect.objectContaining({
      code: 'PACKAGES_MISSING',
      message: 'toLangChainTools needs @langchain/core 0.3.58 or newer. Run: npm install @langchain/core@1',
    }),
  )
})
