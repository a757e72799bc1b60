/** The types of `agent-tasks/telemetry`: compiled by `npm run types`, never run. */
import { expectTypeOf } from 'vitest'
import { metrics, trace } from '@opentelemetry/api'
import { AsyncTaskManager, createAgentTasks } from 'agent-tasks'
import { connectInstance } from 'agent-tasks/client'
import { startMcpHttpServer, startMcpStdioServer } from 'agent-tasks/mcp'
import { startTaskServer } from 'agent-tasks/server'
import { createTelemetry, type Telemetry, type TraceContext } from 'agent-tasks/telemetry'
import type { Operation } from '../../src/protocol/telemetry.js'

export function oneOptionTakesIt(): void {
  const telemetry = createTelemetry({
    tracerProvider: trace.getTracerProvider(),
    meterProvider: metrics.getMeterProvider(),
    captureContent: true,
  })
  expectTypeOf(telemetry).toEqualTypeOf<Telemetry>()
  new AsyncTaskManager({ telemetry })
  createAgentTasks({ telemetry })
  void startTaskServer({ telemetry })
  void startMcpHttpServer({ telemetry })
  startMcpStdioServer({ telemetry })
  void connectInstance('http://127.0.0.1:3300', { tools: [], telemetry })
  expectTypeOf(telemetry.current()).toEqualTypeOf<TraceContext | undefined>()
  expectTypeOf(telemetry.start({ type: 'execute_tool', name: 'build' })).toEqualTypeOf<Operation>()
  // @ts-expect-error there are two types of operation
  telemetry.start({ type: 'chat', name: 'build' })
  // @ts-expect-error it has no such option
  createTelemetry({ exporter: 'otlp' })
}

/** A host may write its own. */
export const silent: Telemetry = {
  current: () => undefined,
  within: (_parent, work) => work(),
  start: () => ({ trace: undefined, run: (work) => work(), end: () => undefined }),
  watch: () => () => undefined,
}
