/** Planted faults of steps: each wraps a part of a manager, or changes what it finds in its store. */
import type { StepLog } from '../../src/features/steps/step-log.js'
import { steps } from '../../src/features/steps/steps.js'
import type { AsyncTaskManager } from '../../src/index.js'
import type { StepSabotage } from './durable-steps.property.js'

export interface StepFault extends StepSabotage {
  readonly name: string
  readonly invariant: 'F20'
  readonly description: string
}

/** Changes the log of each task when a run first uses it. */
function withLogs({ registry }: AsyncTaskManager, change: (log: StepLog) => void): void {
  const feature = registry.use(steps)
  const logOf = feature.logOf.bind(feature)
  const changed = new Set<StepLog>()
  feature.logOf = (entry) => {
    const log = logOf(entry)
    if (!changed.has(log)) change(log)
    changed.add(log)
    return log
  }
}

export const stepFaults: readonly StepFault[] = [
  {
    name: 'stored-step-runs-again',
    invariant: 'F20',
    description: 'the next run does again what is stored',
    alter: (manager) =>
      withLogs(manager, (log) => {
        const begin = log.begin.bind(log)
        log.begin = (step, overlaps) => {
          const { endedAt, ...begun } = begin(step, overlaps)
          return begun.kind === 'work' || endedAt === undefined ? begun : { ...begun, endedAt }
        }
      }),
  },
  {
    name: 'sleep-starts-over',
    invariant: 'F20',
    description: 'a sleep begins again with its process',
    found: (contents, now) => ({
      ...contents,
      featureStates: contents.featureStates.map((row) => {
        const { kind, forMs, endedAt } = row.data
        if (kind !== 'sleep' || endedAt !== undefined || typeof forMs !== 'number') return row
        return { ...row, data: { ...row.data, dueAt: now + forMs } }
      }),
    }),
  },
  {
    name: 'slot-held-by-a-sleeping-run',
    invariant: 'F20',
    description: 'a run that waits keeps its slot',
    alter: ({ registry }) => {
      const send = registry.send.bind(registry)
      registry.send = (event) => send(event.type === 'run.waits' ? { ...event, ticket: undefined } : event)
    },
  },
  {
    name: 'step-ends-before-it-is-stored',
    invariant: 'F20',
    description: 'a run gets a result that a crash may lose',
    alter: ({ registry }) => {
      registry.use(steps).afterStored = (_entry, run) => run()
    },
  },
  {
    name: 'event-taken-twice',
    invariant: 'F20',
    description: 'an event that was taken stays in the store',
    alter: ({ registry: { persistence } }) => {
      if (persistence === undefined) return
      const dropState = persistence.dropState.bind(persistence)
      persistence.dropState = (feature, id) => {
        if (feature !== 'steps' || !id.startsWith('event/')) dropState(feature, id)
      }
    },
  },
  {
    name: 'wait-wakes-nobody',
    invariant: 'F20',
    description: 'a run that has given back its slot is not queued when its wait is over',
    alter: ({ registry }) => {
      const send = registry.send.bind(registry)
      registry.send = (event) => {
        if (event.type !== 'run.works') send(event)
      }
    },
  },
]
