/** Counts of tasks: gauges that are read when metrics are collected, and counters. */
import type { Meter, ObservableResult } from '@opentelemetry/api'
import { WAIT_REASONS, type Telemetry, type WatchedTasks } from '../protocol/telemetry.js'

export interface TaskMetrics {
  readonly watch: Telemetry['watch']
  /** A task is run again. */
  retried(): void
}

export function createTaskMetrics(meter: Meter): TaskMetrics {
  const watched = new Set<WatchedTasks>()
  /** Every kind that was ever watched, so that its gauge reports 0 after its last manager has gone. */
  const kinds = new Set<WatchedTasks['kind']>()
  /** The totals of managers that are no longer watched. */
  const past = new Map<string, number>()
  const gauge = (name: 'running' | 'queued' | 'owed' | 'pauses', description: string, unit = '{task}'): void => {
    const observe = (result: ObservableResult): void => {
      for (const kind of kinds) {
        if ((name === 'owed' || name === 'pauses') && kind === 'command_task') continue
        const counts = [...watched].filter((tasks) => tasks.kind === kind).map((tasks) => tasks.counts()[name] ?? 0)
        const total = counts.reduce((sum, count) => sum + count, 0)
        result.observe(total, { 'agent_tasks.kind': kind })
      }
    }
    meter.createObservableUpDownCounter(`agent_tasks.${name}`, { description, unit }).addCallback(observe)
  }
  gauge('running', 'Tasks that run.')
  gauge('queued', 'Tasks that wait for a slot, or for their instance.')
  gauge('owed', 'Results that no message has carried yet.')
  gauge('pauses', 'Pauses of owners, and that of all.', '{pause}')
  const waiting = { description: 'Queued tasks that wait for more than a slot.', unit: '{task}' }
  meter.createObservableUpDownCounter('agent_tasks.waiting', waiting).addCallback((result) => {
    const reasons = [...watched].flatMap((tasks) => tasks.waiting?.() ?? [])
    for (const reason of kinds.has('task') ? WAIT_REASONS : []) {
      result.observe(reasons.filter((each) => each === reason).length, { 'agent_tasks.reason': reason })
    }
  })
  const total = (name: string, unit: string, description: string): void => {
    meter.createObservableCounter(`agent_tasks.${name}`, { description, unit }).addCallback((result) => {
      const sums = new Map(past)
      for (const { totals } of watched) addTo(sums, totals?.())
      for (const [key, sum] of sums) {
        const [counted, reason] = key.split(' ')
        if (counted === name) result.observe(sum, reason === undefined ? {} : { 'agent_tasks.reason': reason })
      }
    })
  }
  total('firings', '{firing}', 'Firings of schedules, those that stand for missed ones included.')
  total('missed_firings', '{firing}', 'Firings of schedules that fell due while no host was running.')
  total('skipped_firings', '{firing}', 'Firings of schedules that were left out.')
  total('monitor_events', '{event}', 'Events of monitors.')
  total('monitor_ends', '{monitor}', 'Monitors that have ended.')
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
        if (watched.delete(tasks)) addTo(past, tasks.totals?.())
        subscription?.unsubscribe()
      }
    },
  }
}

function addTo(sums: Map<string, number>, totals: ReadonlyMap<string, number> = new Map()): void {
  for (const [name, count] of totals) sums.set(name, (sums.get(name) ?? 0) + count)
}
