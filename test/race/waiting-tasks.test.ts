import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { waitingTasksProperty, type Step } from './waiting-tasks.property.js'

/** A back-off and a reservation end at the same time. */
const sameTime: Step[] = [
  { do: 'launch', priority: 0, queues: false, repeats: true },
  { do: 'end', nth: 0, how: 'rate-limited' },
  { do: 'reserve', ms: 100 },
  { do: 'launch', priority: 0, queues: true, repeats: false },
  { do: 'advance', ms: 300 },
]

/** The same, and a task that was ready before the back-off ended waits behind it. */
const readyBefore: Step[] = [
  { do: 'limit', max: 2 },
  { do: 'reserve', ms: 100 },
  { do: 'launch', priority: 0, queues: false, repeats: true },
  { do: 'launch', priority: 0, queues: true, repeats: false },
  { do: 'launch', priority: 0, queues: true, repeats: false },
  { do: 'end', nth: 0, how: 'rate-limited' },
  { do: 'advance', ms: 300 },
]

it('F8, F9, F10: in any order, across crashes, what waits starts in its place, each run once, and a budget stops', () =>
  checkProperty('waiting tasks', waitingTasksProperty(), { examples: [[sameTime], [readyBefore]] }))
