/**
 * Shows which tasks have ended although their programs are still being stopped. Such a program may hold its port and its files until it has ended. All
 * tools and commands take their words from here.
 */
import { TaskData } from '../../../machines/task-data.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { clearLongTimeout, setLongTimeout } from '../../system/clock.js'
import type { Run } from '../../engine/engine.js'
import type { Feature } from '../../async-tasks/feature.js'
import type { RegistryReads } from '../../async-tasks/registry-reads.js'
import { currentRuns, runs } from '../../async-tasks/run-plan.js'

/** How long the program of a task may take to stop, in ms. Only for tasks that run as programs. */
const programGraces = new TaskData<number>()

type Reads = Pick<RegistryReads, 'history' | 'use' | 'clock'>

/** Returns the run of an ended task, if its program is still being stopped. */
function stoppingRun(reads: Reads, id: string): { readonly run: Run; readonly entry: TaskEntry } | undefined {
  const entry = reads.history.get(id)
  if (entry === undefined || entry.ref !== undefined || programGraces.get(entry) === undefined) return undefined
  const run = currentRuns.get(entry)
  return run !== undefined && reads.use(runs).unsettled.has(run) ? { run, entry } : undefined
}

/** How long the program of an ended task may still take to stop, in ms. Undefined if it has ended, or the task has no program. */
export function stoppingMs(reads: Reads, id: string): number | undefined {
  const stopping = stoppingRun(reads, id)
  return stopping && programGraces.get(stopping.entry)
}

/** Returns what is said about a task whose program is being stopped, such as `stopping: …`; undefined for other tasks. */
export function stoppingText(reads: Reads, id: string): string | undefined {
  const ms = stoppingMs(reads, id)
  return ms === undefined ? undefined : `stopping: its program may take up to ${ms / 1000} s to end`
}

/** Calls the function once, when the program of an ended task has ended. Call this only while it is being stopped (`stoppingMs`). */
export function onceStopped(reads: Reads, id: string, then: () => void): void {
  void stoppingRun(reads, id)?.run.settled.then(then, then)
}

/** The fields of a result about a task whose program is being stopped. */
export function stoppingFields(
  reads: Reads,
  id: string,
): { readonly stopping?: true; readonly stopsWithinMs?: number } {
  const ms = stoppingMs(reads, id)
  return ms === undefined ? {} : { stopping: true, stopsWithinMs: ms }
}

/** Resolves when the programs of these tasks have ended, when the time has passed, or when the signal aborts. */
export async function untilStopped(
  reads: Reads,
  ids: readonly string[],
  limits: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const left = ids.flatMap((id) => stoppingRun(reads, id)?.run ?? [])
  const { timeoutMs, signal } = limits
  if (left.length === 0 || timeoutMs <= 0 || signal?.aborted === true) return
  let end: () => void = () => undefined
  const limit = new Promise<void>((resolve) => (end = resolve))
  const timer = setLongTimeout(reads.clock, end, timeoutMs, { name: 'wait for programs to stop', kind: 'deadline' })
  signal?.addEventListener('abort', end, { once: true })
  await Promise.race([Promise.all(left.map(({ settled }) => settled)), limit])
  signal?.removeEventListener('abort', end)
  clearLongTimeout(reads.clock, timer)
}

/** Notes which runs are programs. */
export const stopping = (): Feature => ({
  runStarted: (entry, _run, runner, graceMs) => {
    const isProgram = entry.record.kind === 'command' || runner.runsElsewhere === true || runner.survivesHost === true
    if (isProgram) programGraces.set(entry, runner.graceMs ?? graceMs)
  },
})
