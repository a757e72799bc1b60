/** Submissions over HTTP, each in a trace of its own or in none, to workers: each call that a worker gets is in the trace of its submission. */
import fc from 'fast-check'
import { TaskManager } from '../../src/command-tasks/task-manager.js'
import { InstanceManager } from '../../src/command-tasks/instances/instance-manager.js'
import { websocketInstance, type WorkerLink } from '../../src/command-tasks/instances/websocket-instance.js'
import { traceOf, type Telemetry, type TraceContext } from '../../src/protocol/telemetry.js'
import { createManualClock } from '../../src/testing/manual-clock.js'

/** Changes what the task manager is given. */
export type AlterTelemetry = (telemetry: Telemetry) => Telemetry

interface Submission {
  /** The number of the trace; 0 for none. */
  readonly trace: number
  readonly worker: 'a' | 'b'
  readonly commands: number
  /** Whether the workers answer before the next one. */
  readonly isWaitedFor: boolean
}

const submissions = fc.array(
  fc.record<Submission>({
    trace: fc.nat(3),
    worker: fc.constantFrom('a', 'b'),
    commands: fc.integer({ min: 1, max: 3 }),
    isWaitedFor: fc.boolean(),
  }),
  { minLength: 1, maxLength: 8 },
)

const traceIdOf = (trace: number): string => trace.toString(16).padStart(32, 'a')
const idIn = ({ traceparent }: TraceContext): string => traceparent.split('-')[1] ?? ''

/** Spans are only numbers. As a thread would, work that was put off has no span. */
function countingTelemetry(): Telemetry {
  let spans = 0
  let fresh = 100
  let active: TraceContext | undefined
  const within = <T>(trace: TraceContext | undefined, work: () => T): T => {
    const before = active
    active = trace ?? active
    try {
      return work()
    } finally {
      active = before
    }
  }
  return {
    within,
    current: () => active,
    start: ({ parent = active }) => {
      const traceId = parent === undefined ? traceIdOf((fresh += 1)) : idIn(parent)
      const trace = { traceparent: `00-${traceId}-${(spans += 1).toString(16).padStart(16, '0')}-01` }
      return { trace, run: (work) => within(trace, work), end: () => undefined }
    },
    watch: () => () => undefined,
  }
}

/** F12, for traces. */
export function tracesProperty(
  alter: AlterTelemetry = (telemetry) => telemetry,
): fc.IAsyncProperty<[readonly Submission[]]> {
  return fc.asyncProperty(submissions, async (sequence) => {
    const clock = createManualClock()
    const telemetry = countingTelemetry()
    const instances = new InstanceManager({ clock })
    const tasks = new TaskManager({ instances, clock, telemetry: alter(telemetry) })
    const expected = new Map<string, number>()
    const unanswered: (() => void)[] = []
    let wrong: string | undefined
    for (const id of ['a', 'b']) {
      const instance = websocketInstance({ id, secret: 's', clock })
      instances.connect(instance)
      const link: WorkerLink | undefined = instance.attach({
        close: () => undefined,
        send: (text) => {
          const message = JSON.parse(text) as { type: string; callId: string; taskId: string }
          if (message.type !== 'tool_call') return
          const trace = traceOf(message)
          const wanted = expected.get(message.taskId) ?? -1
          const isNamed = [1, 2, 3].some((one) => trace !== undefined && idIn(trace) === traceIdOf(one))
          const isRight = wanted === 0 ? !isNamed : trace !== undefined && idIn(trace) === traceIdOf(wanted)
          if (!isRight) wrong ??= `a call of trace ${wanted} has ${trace?.traceparent ?? 'none'}`
          unanswered.push(() => link?.receive({ type: 'tool_result', callId: message.callId, result: { content: [] } }))
        },
      })
    }
    const answerAll = async (): Promise<void> => {
      for (let rounds = 0; rounds < 30; rounds += 1) {
        for (const answer of unanswered.splice(0)) answer()
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    for (const { trace, worker, commands, isWaitedFor } of sequence) {
      const headers = trace === 0 ? {} : { traceparent: `00-${traceIdOf(trace)}-${'b'.repeat(16)}-01` }
      const submitted = telemetry.within(traceOf(headers), () =>
        tasks.submitTask({
          task_name: 't',
          instanceId: worker,
          commands: Array.from({ length: commands }, () => ({ tool_name: 'x' })),
        }),
      )
      if (!('taskId' in submitted)) throw new Error(submitted.error)
      expected.set(submitted.taskId, trace)
      if (isWaitedFor) await answerAll()
    }
    await answerAll()
    const isComplete = tasks.listTasks().every(({ status }) => status === 'completed')
    await tasks.dispose()
    await instances.dispose()
    if (wrong !== undefined) throw new Error(wrong)
    if (!isComplete) throw new Error('a task has not ended')
  })
}
