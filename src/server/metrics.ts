/** The metrics of the server, in the text format of Prometheus. */
import type { TaskManager } from '../command-tasks/task-manager.js'
import {
  endStatusSchema,
  type EndStatus,
  type TaskCompleteMessage,
  type TaskProgressMessage,
} from '../protocol/command-tasks.js'

type ConnectionKind = 'client' | 'worker' | 'event_stream'

export interface Metrics {
  /** Counts an open connection. Call the returned function when the connection closes. */
  connected(kind: ConnectionKind): () => void
  countConnected(kind: ConnectionKind): number
  droppedFrame(): void
  closedSlowReader(): void
  refused(code: string): void
  /** The text of `GET /metrics`. */
  render(): string
  dispose(): void
}

/** The upper bounds of the buckets of the histogram, in seconds. */
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const outcomes = ['success', 'error'] as const
const ends: readonly EndStatus[] = endStatusSchema.options

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number, suffix?: string]

/** @param countSubscribed returns the number of tasks and instances that have subscribers */
export function createMetrics(tasks: TaskManager, countSubscribed: () => number): Metrics {
  const connections: Record<ConnectionKind, number> = { client: 0, worker: 0, event_stream: 0 }
  const settled: Record<EndStatus, number> = { completed: 0, failed: 0, cancelled: 0 }
  const durations = { success: createHistogram(), error: createHistogram() }
  const refusals = new Map<string, number>()
  let droppedFrames = 0
  let slowReaders = 0

  /** For each running task: when its present command started. */
  const startedAt = new Map<string, number>()

  const onProgress = ({ taskId, status, timestamp }: TaskProgressMessage): void => {
    const started = startedAt.get(taskId)
    if (status === 'running') {
      if (started === undefined) startedAt.set(taskId, timestamp)
      return
    }
    startedAt.delete(taskId)
    if (started === undefined || (status !== 'success' && status !== 'error')) return
    durations[status].observe(Math.max(0, timestamp - started) / 1000)
  }
  const onComplete = ({ taskId, status }: TaskCompleteMessage): void => {
    startedAt.delete(taskId)
    settled[status] += 1
  }
  tasks.on('progress', onProgress).on('complete', onComplete)

  return {
    connected: (kind) => {
      connections[kind] += 1
      let isOpen = true
      return () => {
        if (isOpen) connections[kind] -= 1
        isOpen = false
      }
    },
    countConnected: (kind) => connections[kind],
    droppedFrame: () => (droppedFrames += 1),
    closedSlowReader: () => (slowReaders += 1),
    refused: (code) => refusals.set(code, (refusals.get(code) ?? 0) + 1),
    render: () =>
      [
        family('agent_tasks_queued', 'gauge', 'Tasks that wait for their instance.', [
          [{}, tasks.listTasks(undefined, 'queued').length],
        ]),
        family('agent_tasks_running', 'gauge', 'Running tasks.', [[{}, tasks.listTasks(undefined, 'running').length]]),
        family(
          'agent_tasks_settled_total',
          'counter',
          'Tasks that have ended, by status.',
          ends.map((status) => [{ status }, settled[status]]),
        ),
        family(
          'agent_tasks_lane_depth',
          'gauge',
          'Queued and running tasks of an instance.',
          Array.from(tasks.laneDepths, ([instance, depth]) => [{ instance }, depth]),
        ),
        family(
          'agent_tasks_command_duration_seconds',
          'histogram',
          'Duration of commands, by outcome.',
          outcomes.flatMap((outcome) => durations[outcome].samples({ outcome })),
        ),
        family(
          'agent_tasks_late_results_total',
          'counter',
          'Results dropped because they came after the call had been abandoned.',
          [[{}, tasks.lateResults]],
        ),
        family('agent_tasks_dropped_frames_total', 'counter', 'Progress messages not sent to slow readers.', [
          [{}, droppedFrames],
        ]),
        family('agent_tasks_slow_readers_closed_total', 'counter', 'Subscribers closed because they did not read.', [
          [{}, slowReaders],
        ]),
        family(
          'agent_tasks_refused_total',
          'counter',
          'Refused HTTP requests and WebSocket upgrades, by error code.',
          Array.from(refusals, ([code, count]) => [{ code }, count]),
        ),
        family('agent_tasks_subscribed', 'gauge', 'Tasks and instances that have subscribers.', [
          [{}, countSubscribed()],
        ]),
        family(
          'agent_tasks_connections',
          'gauge',
          'Open connections, by kind.',
          Object.entries(connections).map(([kind, count]) => [{ kind }, count]),
        ),
        ...(tasks.persistence === undefined
          ? []
          : [
              family('agent_tasks_store_failing', 'gauge', '1 while the store cannot be written.', [
                [{}, tasks.persistence.isFailing ? 1 : 0],
              ]),
            ]),
      ].join(''),
    dispose: () => {
      tasks.off('progress', onProgress).off('complete', onComplete)
    },
  }
}

function createHistogram() {
  const counts = BOUNDS.map(() => 0)
  let count = 0
  let sum = 0
  return {
    observe: (seconds: number): void => {
      const at = BOUNDS.findIndex((bound) => seconds <= bound)
      if (at !== -1) counts[at] = (counts[at] ?? 0) + 1
      count += 1
      sum += seconds
    },
    samples: (labels: Readonly<Record<string, string>>): Sample[] => {
      let below = 0
      const buckets = BOUNDS.map((bound, at): Sample => [
        { ...labels, le: String(bound) },
        (below += counts[at] ?? 0),
        '_bucket',
      ])
      return [
        ...buckets,
        [{ ...labels, le: '+Inf' }, count, '_bucket'],
        [labels, sum, '_sum'],
        [labels, count, '_count'],
      ]
    },
  }
}

function family(
  name: string,
  type: 'gauge' | 'counter' | 'histogram',
  help: string,
  samples: readonly Sample[],
): string {
  const lines = samples.map(([labels, value, suffix = '']) => {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escapeLabel(text)}"`)
    return `${name}${suffix}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
  })
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

const escapeLabel = (text: string): string => text.replace(/[\\"\n]/g, (char) => (char === '\n' ? '\\n' : `\\${char}`))
