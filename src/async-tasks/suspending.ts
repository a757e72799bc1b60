/**
 * Ends a manager with a store without ending its tasks (promise K13). The next process finds what a crash would have left, apart from what runs have
 * returned within their grace.
 *
 * The records keep their status. Runs are asked to stop, except those that survive the process.
 */
import type { TaskEntry } from '../../machines/task-entry.js'
import { suspension } from './cancel-reason.js'
import { monitors } from '../features/monitors/monitors.js'
import type { Persistence } from './recovery/persistence.js'
import type { TaskRegistry } from './registry.js'
import { currentRuns, runs, runStates } from './run-plan.js'
import { isStopping } from './runs.js'

/**
 * Suspends all active tasks and disposes the registry.
 * @returns a promise that resolves when the runs that must end have ended, or their grace has passed
 */
export function suspendTasks(registry: TaskRegistry, persistence: Persistence): Promise<unknown> {
  const { ledger } = registry
  const { unsettled } = registry.use(runs)
  const queued = ledger.queued()
  const running = ledger.running().filter(({ ref }) => ref !== undefined && !isStopping(ref))
  const left = new Set(running.filter((entry) => canLeave(registry, persistence, entry)))
  registry.batch(() => {
    registry.use(monitors).report()
    for (const entry of running) if (!left.has(entry)) note(persistence, entry)
  })
  const reason = suspension()
  for (const entry of left) {
    const run = currentRuns.get(entry)
    if (run !== undefined) unsettled.delete(run)
  }
  const ending = Promise.all(Array.from(unsettled, (run) => run.settled))
  registry.suspend(running.filter((entry) => !left.has(entry)))
  for (const entry of queued) registry.features.run('suspended', entry, 'queued')
  for (const entry of left) registry.features.run('suspended', entry, 'left')
  for (const entry of running) {
    if (left.has(entry)) continue
    // The run of a launch that is being stored never begins, so there is nothing to abort.
    const isLaunching = runStates.get(entry) === undefined && persistence.runOf(entry).params !== undefined
    registry.features.run('suspended', entry, isLaunching ? 'queued' : reason)
  }
  return ending
}

/** Whether the next process can follow the run. A run that has not started its program yet is stopped instead. */
function canLeave({ report }: TaskRegistry, persistence: Persistence, entry: TaskEntry): boolean {
  const state = runStates.get(entry)
  if (state?.runner.survivesHost !== true) return false
  try {
    return state.runner.canResume?.(persistence.folderOf(entry.record), persistence.runOf(entry).program) !== false
  } catch (error) {
    report(error, { source: 'runner', taskId: entry.record.id })
    return false
  }
}

/** Stores that a run was stopped with its process. A task that the host runs itself cannot be run again, so nothing is stored of it. */
function note(persistence: Persistence, entry: TaskEntry): void {
  if (persistence.runOf(entry).params === undefined) return
  if (runStates.get(entry)?.hasBegun === true) persistence.addSuspension(entry)
  else persistence.setRun(entry, { hasNotBegun: true })
}
