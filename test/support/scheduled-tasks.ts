/** A manager with schedules, on a clock that the test sets. The test sees the notes of schedules among the owed results, and decides when runs end. */
import { onTestFinished } from 'vitest'
import { AsyncTaskManager, type AsyncTaskManagerOptions, type RunInput, type ScheduleInput } from '../../src/index.js'
import { createJumpingClock } from './jumping-clock.js'
import { tick } from './limited-tasks.js'

/** A Monday, in winter. */
export const START = Date.UTC(2027, 0, 4, 12)

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE

/** @param start the first time of day, in ms since the epoch */
export function scheduledTasks(options: AsyncTaskManagerOptions = {}, start = START) {
  const clock = createJumpingClock(start)
  const runs: { readonly input: RunInput; end(): Promise<void> }[] = []
  const errors: { readonly error: unknown; readonly source: string }[] = []
  let last = 0
  const manager = new AsyncTaskManager({
    clock,
    createId: (prefix) => `${prefix}-${(last += 1)}`,
    onError: (error, { source }) => errors.push({ error, source }),
    graceMs: 0,
    findRunner: (name) =>
      name !== 'scout'
        ? undefined
        : (input, { signal }) =>
            new Promise((resolve) => {
              signal.addEventListener('abort', () => resolve({}))
              runs.push({
                input,
                end: () => {
                  resolve({ final_message: 'done' })
                  return tick()
                },
              })
            }),
    ...options,
  })
  onTestFinished(() => manager.dispose())
  return {
    manager,
    clock,
    runs,
    errors,
    schedule: (input: ScheduleInput) => manager.schedule({ timeZone: 'UTC', ...input }),
    /** Lets time pass in small steps, so that runs can start in between. */
    pass: async (ms: number) => {
      for (let left = ms; left > 0; left -= MINUTE) {
        clock.advance(Math.min(left, MINUTE))
        await tick()
      }
    },
    /** The texts that an owner is owed, in the order in which they were owed. */
    notes: (owner?: string) => manager.getPendingNotifications(owner).map((task) => String(task.output?.final_message)),
    /** The times that were due, from the texts of the notes. */
    dues: (owner?: string) =>
      manager
        .getPendingNotifications(owner)
        .map((task) => /due (\S+ \S+) /.exec(String(task.output?.final_message))?.[1] ?? 'none'),
  }
}
