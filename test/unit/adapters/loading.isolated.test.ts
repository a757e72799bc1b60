import { afterEach, expect, it, vi } from 'vitest'

const sdks = {
  'ai-sdk': ['ai'],
  'openai-agents': ['@openai/agents'],
  langchain: ['@langchain/core/tools', '@langchain/core/messages'],
  'json-schema': [],
}

type Adapter = keyof typeof sdks

const load: Record<Adapter, () => Promise<object>> = {
  'ai-sdk': () => import('../../../src/adapters/ai-sdk.js'),
  'openai-agents': () => import('../../../src/adapters/openai-agents.js'),
  langchain: () => import('../../../src/adapters/langchain.js'),
  'json-schema': () => import('../../../src/adapters/json-schema.js'),
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
  const modules = await Promise.all([import('../../../src/index.js'), import('../../../src/tools/index.js')])
  expect(modules).toHaveLength(2)
})
