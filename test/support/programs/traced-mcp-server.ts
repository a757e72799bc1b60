/** An MCP server over stdio that sends its spans to the collector at the URL in its argument. Its subagent prints its own span. */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { startMcpStdioServer } from 'agent-tasks/mcp'
import { createTelemetry } from 'agent-tasks/telemetry'

const exporter = new OTLPTraceExporter({ url: process.argv[2] ?? '' })
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] })
provider.register()
const server = startMcpStdioServer({
  telemetry: createTelemetry(),
  config: {
    subagents: [
      {
        name: 'echo',
        description: 'Prints its span.',
        command: process.execPath,
        args: ['-p', 'process.env.TRACEPARENT'],
      },
    ],
  },
})
await server.closed
await provider.shutdown()
