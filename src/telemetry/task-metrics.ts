/** Counts of tasks: gauges that are read when metrics are collected, and counters. */
import type { Meter, ObservableResult } from '@opentelemetry/api'
import type { Telemetry, WatchedTasks } from '../protocol/telemetry.js'

export interface TaskMetrics {
  readonly watch: Telemetry['watch']
  /** A task is run again. */
  retried(): void
}

export function createTaskMetrics(meter: Meter): TaskMetrics {
  const watched = new Set<WatchedTasks>()
  /** The kinds that were watched, so that their last counts do not stay. */
  const kinds = new Set<WatchedTasks['kind']>()
  const gauge = (name: 'running' | 'queued' | 'owed', description: string): void => {
    const observe = (result: ObservableResult): void => {
      for (const kind of kinds) {
        if (name === 'owed' && kind === 'command_task') continue
        const counts = [...watched].filter((tasks) => tasks.kind === kind).map((tasks) => tasks.counts()[name] ?? 0)
        const total = counts.reduce((sum, count) => sum + count, 0)
        result.observe(total, { 'agent_tasks.kind': kind })
      }
    }
    meter.createObservableUpDownCounter(`agent_tasks.${name}`, { description, unit: '{task}' }).addCallback(observe)
  }
  gauge('running', 'Tasks that run.')
  gauge('queued', 'Tasks that wait for a slot, or for their instance.')
  gauge('owed', 'Results that no message has carried yet.')
  const deliveries = meter.createCounter('agent_tasks.deliveries', {
    description: 'Results that were delivered to an agent.',
    unit: '{task}',
  })
  const retries = meter.createCounter('agent_tasks.retries', {
    description: 'Runs of a task after its first.',
    unit: '{run}',
  })
  return {
    retried: () => retries.add(1),
    watch: (tasks) => {
      watched.add(tasks)
      kinds.add(tasks.kind)
      const subscription = tasks.transitions$?.subscribe((transition) => {
        if (transition.kind === 'delivery' && transition.to === 'delivered') deliveries.add(1)
      })
      return () => {
        watched.delete(tasks)
        subscription?.unsubscribe()
      }
    },
  }
}
