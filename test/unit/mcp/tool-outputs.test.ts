/** The structured content of results, as far as a store adds to it. */
import { expect, it } from 'vitest'
import * as outputs from '../../../src/mcp/tool-outputs.js'

const { launchOutput, checkOutput, waitOutput, readOutput } = outputs

it.each(Object.entries({ launchOutput, checkOutput, waitOutput, readOutput }))(
  'K3: %s names the delivery id and a possible repeat, and only where there are some',
  (_name, output) => {
    const range = { task_id: 'a', start: 0, nextCursor: 1, skippedBytes: 0, remainingBytes: 0 }
    const metadata = { ...range, id: 'a', agentId: 'a', status: 'completed', settled: ['a'], pending: [] }
    const structured = (more: object): unknown => {
      const result = outputs.toCallToolResult(
        { llmContent: 'text', returnDisplay: 'text', metadata: { ...metadata, ...more } },
        output,
      )
      return output.schema.parse(result.structuredContent)
    }
    expect(structured({ deliveryId: 'd', isRepeat: true })).toMatchObject({ delivery_id: 'd', is_repeat: true })
    expect(structured({})).not.toHaveProperty('delivery_id')
    expect(structured({})).not.toHaveProperty('is_repeat')
  },
)
