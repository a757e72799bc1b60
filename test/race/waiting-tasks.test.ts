import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { waitingTasksProperty } from './waiting-tasks.property.js'

it('F8, F9, F10: in any order, across crashes, what waits starts in its place, each run once, and a budget stops', () =>
  checkProperty('waiting tasks', waitingTasksProperty()))
