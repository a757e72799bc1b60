/**
 * Tools that do what tools do - end at once, report, fail, take their time, ignore an abort, come back late - and keep a diary of every
 * call, from which it can be told whether a lane ran two at once. They know nothing of the server.
 */
import { setTimeout as delay } from 'node:timers/promises'

interface ToolContext {
  readonly signal: AbortSignal
  readonly progress: (progress: { progress: number; total: number }) => void
}

interface RecordedTool {
  readonly name: string
  execute(input: unknown, context: ToolContext): Promise<unknown>
}

export const toolNames = ['quick', 'report', 'fail', 'slow', 'deaf', 'late', 'stuck'] as const

export interface Diary {
  /** Every call that began while another of its place ran that was neither aborted nor, being deaf, out of its grace. */
  readonly overlaps: string[]
  readonly calls: number
  readonly aborted: number
  /** Calls that returned after they had been aborted. */
  readonly late: number
  /** The tools of one place: an instance of this process, or one worker program. */
  toolsOf(place: string, graceMs: number): RecordedTool[]
}

interface Call {
  readonly name: string
  abortedAt: number | undefined
}

export function createDiary(): Diary {
  const overlaps: string[] = []
  const open = new Map<string, Set<Call>>()
  const counts = { calls: 0, aborted: 0, late: 0 }

  function enter(place: string, graceMs: number, name: string, signal: AbortSignal): () => void {
    const others = open.get(place) ?? new Set()
    open.set(place, others)
    for (const other of others) {
      // A timer counts from the time that its turn of the event loop began, so it is early by what the turn had taken when it was set.
      const isAbandoned = other.abortedAt !== undefined && performance.now() - other.abortedAt >= graceMs / 2
      if (!isAbandoned) overlaps.push(`${place}: ${name} began while ${other.name} ran`)
    }
    const call: Call = { name, abortedAt: undefined }
    others.add(call)
    counts.calls += 1
    const onAbort = (): void => {
      call.abortedAt = performance.now()
      counts.aborted += 1
    }
    signal.addEventListener('abort', onAbort, { once: true })
    return () => {
      others.delete(call)
      signal.removeEventListener('abort', onAbort)
      if (call.abortedAt !== undefined) counts.late += 1
    }
  }

  const bodies: Record<(typeof toolNames)[number], (context: ToolContext) => unknown> = {
    quick: () => 'done',
    report: async ({ progress, signal }) => {
      for (let step = 1; step <= 3; step += 1) {
        progress({ progress: step, total: 3 })
        await delay(step, undefined, { signal })
      }
      return 'reported'
    },
    fail: async () => {
      await delay(1)
      throw new Error('It failed.')
    },
    slow: ({ signal }) => delay(25, 'slept', { signal }),
    deaf: () => delay(35, 'heard nothing'),
    late: async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      await delay(80)
      return 'too late'
    },
    stuck: ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reject(new Error('stopped'))
          throw new Error('A listener of a tool that throws.')
        })
      }),
  }

  return {
    overlaps,
    get calls() {
      return counts.calls
    },
    get aborted() {
      return counts.aborted
    },
    get late() {
      return counts.late
    },
    toolsOf: (place, graceMs) =>
      toolNames.map((name) => ({
        name,
        execute: async (_input, context) => {
          const leave = enter(place, graceMs, name, context.signal)
          try {
            return await bodies[name](context)
          } finally {
            leave()
          }
        },
      })),
  }
}
