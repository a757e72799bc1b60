/** Spans of three processes in a collector: a host, an MCP server behind stdio, and the program of its subagent. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { expect, it, onTestFinished } from 'vitest'
import { createTelemetry } from '../../src/observability/telemetry/index.js'

interface OtlpSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
}

/** Receives OTLP/JSON over HTTP. */
async function openCollector() {
  const spans: OtlpSpan[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { resourceSpans } = JSON.parse(body) as {
        resourceSpans: { scopeSpans: { spans: OtlpSpan[] }[] }[]
      }
      spans.push(...resourceSpans.flatMap((each) => each.scopeSpans.flatMap((scope) => scope.spans)))
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return { spans, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces` }
}

it('F12: one trace goes over OTLP from a host through an MCP server in another process to its subagent', async () => {
  const { spans, url } = await openCollector()
  const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url }))] })
  const telemetry = createTelemetry({ tracerProvider: provider })
  const operation = telemetry.start({ type: 'invoke_agent', name: 'host' })
  const client = new Client({ name: 'host', version: '1' })
  const program = fileURLToPath(new URL('../support/programs/traced-mcp-server.ts', import.meta.url))
  const args = ['--import', 'tsx', program, url]
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'inherit' }))
  const call = { name: 'task', arguments: { subagent_name: 'echo', goal_prompt: 'g' } }
  const { content } = await client.callTool({ ...call, _meta: { ...operation.trace } })
  await client.close()
  operation.end()
  await provider.shutdown()
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  const line: string[] = []
  let span = spans.find(({ name }) => name === 'invoke_agent echo')
  // What the program found in its environment.
  expect(JSON.stringify(content)).toContain(`00-${span?.traceId}-${span?.spanId}-01`)
  for (; span !== undefined; span = byId.get(span.parentSpanId ?? '')) line.unshift(span.name)
  expect(line).toEqual(['invoke_agent host', 'execute_tool task', 'invoke_agent echo'])
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
}, 30_000)
