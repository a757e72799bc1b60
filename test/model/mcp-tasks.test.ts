import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { mcpTasksProperty } from './mcp-tasks.property.js'
import { tracesProperty } from './traces.property.js'

it('F12: clients of both generations see their own tasks, and an end only after it was stored', () =>
  checkProperty('mcp tasks', mcpTasksProperty()))

it('F12: each call that a worker gets is in the trace of its submission', () =>
  checkProperty('traces', tracesProperty(), { numRuns: 50 }))
