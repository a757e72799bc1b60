/** A real OpenTelemetry SDK whose spans and metrics stay in memory. It is registered for one test. */
import { context, propagation, SpanStatusCode, trace } from '@opentelemetry/api'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, SimpleSpanProcessor, type ReadableSpan } from '@opentelemetry/sdk-trace-base'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { onTestFinished } from 'vitest'
import { createTelemetry } from '../../../../src/observability/telemetry/index.js'
import type { OpenTelemetryOptions } from '../../../../src/observability/telemetry/open-telemetry.js'

export function recordTelemetry(options: OpenTelemetryOptions = {}) {
  const exporter = new InMemorySpanExporter()
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  provider.register()
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: 3_600_000 })
  const meterProvider = new MeterProvider({ readers: [reader] })
  onTestFinished(async () => {
    await Promise.all([provider.shutdown(), meterProvider.shutdown()])
    trace.disable()
    context.disable()
    propagation.disable()
  })
  const telemetry = createTelemetry({ tracerProvider: provider, meterProvider, ...options })
  const tracer = provider.getTracer('host')
  return {
    telemetry,
    /** Runs work in a span of the host. */
    inSpan: <T>(name: string, work: () => T): T =>
      tracer.startActiveSpan(name, (span) => {
        try {
          return work()
        } finally {
          span.end()
        }
      }),
    spans: () => exporter.getFinishedSpans(),
    span: (name: string): ReadableSpan => {
      const found = exporter.getFinishedSpans().find((span) => span.name === name)
      if (found === undefined) throw new Error(`there is no span ${name}`)
      return found
    },
    /** The scopes of the metrics. */
    scopes: async () => {
      metricExporter.reset()
      await reader.forceFlush()
      return metricExporter
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.map(({ scope }) => scope)
    },
    /** The values of each metric, with their attributes. */
    metrics: async () => {
      metricExporter.reset()
      await reader.forceFlush()
      const collected = metricExporter.getMetrics().at(-1)
      return new Map(
        collected?.scopeMetrics.flatMap((scope) =>
          scope.metrics.map(({ descriptor, dataPoints }) => [
            descriptor.name,
            dataPoints.map(({ attributes, value }) => ({
              ...attributes,
              value: typeof value === 'object' ? (value as { count: number }).count : value,
            })),
          ]),
        ),
      )
    },
  }
}

/** The names of the spans from one up to the root, all in one trace. */
export function lineOf(spans: readonly ReadableSpan[], name: string): string[] {
  const line: string[] = []
  let span = spans.find(
    (each) => each.name === name && !spans.some((child) => child.name === name && isChild(child, each)),
  )
  const traceId = span?.spanContext().traceId
  while (span !== undefined) {
    line.unshift(span.name)
    const parentId: string | undefined = span.parentSpanContext?.spanId
    span = spans.find((each) => each.spanContext().spanId === parentId && each.spanContext().traceId === traceId)
  }
  return line
}

const isChild = (child: ReadableSpan, span: ReadableSpan): boolean =>
  child.parentSpanContext?.spanId === span.spanContext().spanId

export const hasFailed = ({ status }: ReadableSpan): boolean => status.code === SpanStatusCode.ERROR
