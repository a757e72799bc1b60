/** What the answers of the MCP server deliver, in random sequences of calls and broken connections. */
import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { mcpAnswersProperty } from './mcp-answers.property.js'

it('A5: an MCP client reads each result, in one answer that was written out', async () => {
  await checkProperty('MCP answers', mcpAnswersProperty(), { numRuns: 100 })
})
