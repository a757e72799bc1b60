/** Implements the telemetry interface with `@opentelemetry/api`, with the names of the GenAI semantic conventions. */
import {
  context,
  metrics,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type MeterProvider,
  type TracerProvider,
} from '@opentelemetry/api'
import { omitUndefined } from '../../data/omit-undefined.js'
import { aBoolean, checkOptions, objectWith, type OptionTypes } from '../../protocol/option-checks.js'
import type { Operation, OperationEnd, OperationStart, Telemetry, TraceContext } from '../../protocol/telemetry.js'
import { inputAttributes, outputAttributes, shownText } from './content.js'
import { packageVersion } from '../../system/version.js'
import { createTaskMetrics } from './task-metrics.js'
import { contextOf, traceContextOf } from './trace-context.js'

/** Options of `createTelemetry`. */
export interface OpenTelemetryOptions {
  /** Creates the spans. Default: the provider that is registered globally. */
  readonly tracerProvider?: TracerProvider
  /** Creates the metrics. Default: the provider that is registered globally. */
  readonly meterProvider?: MeterProvider
  /** Whether goals, arguments, results and error messages are recorded, up to 16384 characters of each. They may contain secrets. Default false. */
  readonly captureContent?: boolean
}

const optionTypes: OptionTypes<OpenTelemetryOptions> = {
  tracerProvider: objectWith('a tracer provider', 'getTracer'),
  meterProvider: objectWith('a meter provider', 'getMeter'),
  captureContent: aBoolean,
}

const NAME = 'agent-tasks'

/** The bounds of the histogram in the semantic conventions, in seconds. */
const AGENT_BOUNDS = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6]
const TOOL_BOUNDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]

/**
 * Creates traces and metrics with OpenTelemetry: the spans `invoke_agent` and `execute_tool`, their durations, and counts of tasks. Pass the result as
 * the option `telemetry`.
 *
 * The spans of a trace are connected only if a context manager is registered. `NodeTracerProvider.register()` and `NodeSDK` register one.
 * @throws INVALID_INPUT for an unknown or invalid option
 */
export function createTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  checkOptions(options, optionTypes)
  const { tracerProvider = trace.getTracerProvider(), captureContent = false } = options
  const tracer = tracerProvider.getTracer(NAME, packageVersion)
  const meter = (options.meterProvider ?? metrics.getMeterProvider()).getMeter(NAME, packageVersion)
  const histogram = (name: string, description: string, explicitBucketBoundaries: number[]) =>
    meter.createHistogram(name, { description, unit: 's', advice: { explicitBucketBoundaries } })
  const durations = {
    invoke_agent: histogram('gen_ai.invoke_agent.duration', 'The duration of the run of a subagent.', AGENT_BOUNDS),
    execute_tool: histogram('gen_ai.execute_tool.duration', 'The duration of the call of a tool.', TOOL_BOUNDS),
  }
  const taskMetrics = createTaskMetrics(meter)
  /** What `current` has returned: trace contexts of this process. */
  const captured = new WeakSet<TraceContext>()

  const start = (operation: OperationStart): Operation => {
    const { type, name, parent, isServed = false, attempt = 1 } = operation
    const active = context.active()
    const within = (parent && contextOf(parent, captured.has(parent) ? active : undefined)) ?? active
    const span = tracer.startSpan(
      `${type} ${name}`,
      {
        kind: isServed ? SpanKind.SERVER : SpanKind.INTERNAL,
        attributes: { ...attributesOf(operation), ...(captureContent && inputAttributes(operation)) },
      },
      within,
    )
    if (attempt > 1) taskMetrics.retried()
    const inside = trace.setSpan(within, span)
    const startedAt = performance.now()
    let hasEnded = false
    return {
      trace: traceContextOf(span.spanContext()),
      run: (work) => context.with(inside, work),
      end: (end: OperationEnd = {}) => {
        if (hasEnded) return
        hasEnded = true
        const { errorType, error } = end
        const failure: Attributes = errorType === undefined ? {} : { 'error.type': errorType }
        if (captureContent) span.setAttributes(outputAttributes(operation, end))
        if (errorType !== undefined) {
          const message = captureContent && error !== undefined ? { message: shownText(error) } : {}
          span.setAttributes(failure).setStatus({ code: SpanStatusCode.ERROR, ...message })
        }
        span.end()
        const seconds = (performance.now() - startedAt) / 1000
        const named = type === 'invoke_agent' ? 'gen_ai.agent.name' : 'gen_ai.tool.name'
        durations[type].record(seconds, { [named]: name, ...failure }, inside)
      },
    }
  }
  return {
    current: () => {
      const present = traceContextOf(trace.getSpanContext(context.active()))
      if (present !== undefined) captured.add(present)
      return present
    },
    within: (parent, work) => {
      const remote = parent && contextOf(parent)
      return remote === undefined ? work() : context.with(remote, work)
    },
    start,
    watch: taskMetrics.watch,
  }
}

function attributesOf({ type, name, isServed, callId, taskId, attempt }: OperationStart): Attributes {
  const isAgent = type === 'invoke_agent'
  return {
    'gen_ai.operation.name': type,
    [isAgent ? 'gen_ai.agent.name' : 'gen_ai.tool.name']: name,
    ...(isAgent && taskId !== undefined && { 'gen_ai.agent.id': taskId }),
    ...(!isAgent && { 'gen_ai.tool.type': 'function' }),
    ...omitUndefined({ 'gen_ai.tool.call.id': callId }),
    ...(isServed === true && { 'mcp.method.name': 'tools/call' }),
    ...omitUndefined({ 'agent_tasks.task.id': taskId, 'agent_tasks.attempt': attempt }),
  }
}
