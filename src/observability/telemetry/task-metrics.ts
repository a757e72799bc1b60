/** Metrics of tasks: gauges, which are read when metrics are collected, and counters. */
import type { Meter, ObservableResult } from '@opentelemetry/api'
import { monitorCounters } from '../../features/monitors/telemetry.js'
import { scheduleCounters } from '../../features/schedules/telemetry.js'
import { WAIT_REASONS, type Telemetry, type WatchedTasks } from '../../protocol/telemetry.js'

const featureCounters = [...scheduleCounters, ...monitorCounters]

export interface TaskMetrics {
  readonly watch: Telemetry['watch']
  retried(): void
}

export function createTaskMetrics(meter: Meter): TaskMetrics {
  const watched = new Set<WatchedTasks>()
  /** Every kind of task that was ever watched. Its gauge then reports 0, and not nothing, after its last manager has gone. */
  const kinds = new Set<WatchedTasks['kind']>()
  /** The totals of managers that are not watched any more. */
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
  gauge('pauses', 'Pauses of single owners, and of all owners.', '{pause}')
  const waiting = { description: 'Queued tasks that wait for another reason than a slot.', unit: '{task}' }
  meter.createObservableUpDownCounter('agent_tasks.waiting', waiting).addCallback((result) => {
    const reasons = [...watched].flatMap((tasks) => tasks.waiting?.() ?? [])
    for (const reason of kinds.has('task') ? WAIT_REASONS : []) {
      result.observe(reasons.filter((each) => each === reason).length, { 'agent_tasks.reason': reason })
    }
  })
  for (const [name, unit, description] of featureCounters) {
    meter.createObservableCounter(`agent_tasks.${name}`, { description, unit }).addCallback((result) => {
      const sums = new Map(past)
      for (const { totals } of watched) addTo(sums, totals?.())
      for (const [key, sum] of sums) {
        const [counted, reason] = key.split(' ')
        if (counted === name) result.observe(sum, reason === undefined ? {} : { 'agent_tasks.reason': reason })
      }
    })
  }
  const deliveries = meter.createCounter('agent_tasks.deliveries', {
    description: 'Results that were delivered to an agent.',
    unit: '{task}',
  })
  const retries = meter.createCounter('agent_tasks.retries', {
    description: 'Retries: runs of tasks, without the first run of each task.',
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
