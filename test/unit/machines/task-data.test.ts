import { expect, it } from 'vitest'
import { TaskData } from '../../../machines/task-data.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { AsyncTaskManager } from '../../../src/index.js'
import { outputLogs } from '../../../src/features/output/output-log.js'
import { launches } from '../../../src/async-tasks/run-plan.js'

it('a feature keeps one value for each task, and sees none of another feature', () => {
  const [one, other] = [new TaskData<string[]>(), new TaskData<string[]>()]
  const [a, b] = [{ kept: undefined }, { kept: undefined }] as unknown as TaskEntry[]
  if (a === undefined || b === undefined) throw new Error('no entries')
  expect([one.get(a), one.take(a)]).toEqual([undefined, undefined])
  const made = one.ensure(a, () => ['made'])
  expect(one.ensure(a, () => ['again'])).toBe(made)
  expect([one.get(b), other.get(a)]).toEqual([undefined, undefined])
  one.set(a, ['set'])
  other.set(a, ['other'])
  expect(one.take(a)).toEqual(['set'])
  expect([one.get(a), other.get(a)]).toEqual([undefined, ['other']])
})

it('nothing is kept of a task that was pruned, though its run goes on', async () => {
  const manager = new AsyncTaskManager({ maxAsyncTasks: 0, onError: () => undefined })
  manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g' })
  manager.appendOutput('a', 'text')
  const entry = manager.registry.history.get('a')
  if (entry === undefined) throw new Error('no entry')
  expect(outputLogs.get(entry)).toBeDefined()
  manager.cancelTask('a')
  expect(manager.getTask('a')).toBeUndefined()
  expect([entry.data, outputLogs.get(entry), launches.get(entry)]).toEqual([undefined, undefined, undefined])
  await manager.dispose()
})
