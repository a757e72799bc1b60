/**
 * An agent's turn as an operator sees it: the model starts two subagents, one of which fails, and waits for them. The spans and counts are
 * those that an OpenTelemetry SDK would export.
 */
import assert from 'node:assert/strict'
import { trace } from '@opentelemetry/api'
import { InMemorySpanExporter, SimpleSpanProcessor, type ReadableSpan } from '@opentelemetry/sdk-trace-base'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { createAgentTasks, processRunner } from 'agent-tasks'
import { createTelemetry } from 'agent-tasks/telemetry'

const exporter = new InMemorySpanExporter()
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
provider.register()

const node = (script: string) => processRunner({ command: process.execPath, args: ['-e', script] })
const agent = createAgentTasks({
  telemetry: createTelemetry(),
  subagents: {
    tests: { description: 'Runs the tests.', run: node('console.log("12 passed")') },
    lint: { description: 'Checks the style.', run: node('console.error("2 problems"); process.exit(1)') },
  },
})

// The turn of a model: an agent SDK with tracing opens this span.
await trace.getTracer('host').startActiveSpan('chat', async (span) => {
  const start = (name: string) =>
    agent.tools.task.execute(
      { subagent_name: name, goal_prompt: 'All of src', async: true },
      { toolCallId: `call-${name}` },
    )
  await start('tests')
  await start('lint')
  const { llmContent } = await agent.tools.wait_for_async_tasks.execute({})
  console.log(llmContent.split('\n')[0])
  span.end()
})
await agent.dispose()

const spans = exporter.getFinishedSpans()
const show = (span: ReadableSpan, depth: number): void => {
  const error = span.attributes['error.type']
  console.log(`${'  '.repeat(depth)}${span.name}${error === undefined ? '' : ` (${String(error)})`}`)
  const children = spans.filter(({ parentSpanContext }) => parentSpanContext?.spanId === span.spanContext().spanId)
  for (const child of children.sort((a, b) => a.name.localeCompare(b.name))) show(child, depth + 1)
}
const root = spans.find(({ name }) => name === 'chat')
assert(root)
show(root, 0)

assert.equal(new Set(spans.map((span) => span.spanContext().traceId)).size, 1)
assert.equal(spans.filter(({ name }) => name.startsWith('invoke_agent ')).length, 2)
// Nothing of what was said is in a span, unless it is asked for with captureContent.
const shown = JSON.stringify(spans.map(({ name, attributes, status }) => ({ name, attributes, status })))
assert(!shown.includes('All of src') && !shown.includes('12 passed') && !shown.includes('2 problems'))
await provider.shutdown()
