/** docs/tools.md has every tool exactly as models get it: a change of a text or a schema shows there. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { readBlocks } from '../../../scripts/doc-blocks.js'
import { fullConfig, toolsPage } from '../../../scripts/tools-page.js'
import { toolList, TOOLS } from '../../../src/tools/tool-list.js'
import { overStdio } from '../mcp/clients.js'

const page = readFileSync(new URL('../../../docs/tools.md', import.meta.url), 'utf8')

it('F12: the definitions of all tools are those of docs/tools.md, byte for byte (npm run docs:tools writes it)', async () => {
  expect(page).toBe(await toolsPage())
})

it('F12: an MCP server sends them as the page has them', async () => {
  const { ask, initialize } = overStdio(fullConfig)
  await initialize()
  const { tools } = (await ask(1, 'tools/list', {})) as unknown as { tools: object[] }
  const shown = readBlocks('docs/tools.md', page).map(({ text }) => JSON.parse(text) as object)
  // The client of the tests has a subagent of its own.
  const sent = JSON.stringify(tools).replace(String.raw`\n- slow`, '')
  expect(sent).toBe(JSON.stringify(shown.filter((tool) => 'outputSchema' in tool)))
})

it('each tool has the name of its key, and texts that make sentences', () => {
  expect(toolList.map(({ name }) => name)).toEqual(Object.keys(TOOLS))
  for (const { name, title, summary, purpose, brief, starts, create, served, slotOf } of toolList) {
    expect([name, title], 'a title').toEqual([name, expect.stringMatching(/^[A-Z].*[^.]$/)])
    expect([name, summary], 'a sentence').toEqual([name, expect.stringMatching(/^[A-Z].*\.$/)])
    expect([name, purpose], 'a clause that ends a sentence').toEqual([name, expect.stringMatching(/^[a-z].*\.$/)])
    expect([name, brief ?? 'is not named'], 'a clause').toEqual([name, expect.stringMatching(/^[a-z].*[^.]$/)])
    expect([name, (create ?? served?.create) !== undefined]).toEqual([name, true])
    expect([name, starts !== undefined], 'what launches says what it starts').toEqual([name, slotOf !== undefined])
  }
})
