import { expect, it } from 'vitest'
import { addresseeOf } from '../../../src/features/questions/question-addressee.js'
import { AsyncTaskManager } from '../../../src/index.js'

it('F6: a question of a task whose owner is a run that is gone stays with that owner', () => {
  const manager = new AsyncTaskManager()
  const task = manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g' })
  expect(addresseeOf(manager.registry, { ...task, owner: 'run:gone' })).toBe('run:gone')
})
