/** The kit's model and commands agree with the real manager, and notice a broken one. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { taskInputs } from '../../src/testing/arbitraries.js'
import { createManagerPair, managerCommand } from '../../src/testing/manager-pair.js'
import { registryFaults } from '../support/planted-faults.js'
import { deliveryFaults } from '../race/delivery-faults.js'
import { checkProperty } from '../support/property.js'
import { createSubject } from '../support/subject.js'
import { kitCommandsProperty, kitLedgerProperty } from './kit.property.js'

it('A1, A3, A4, A5, A6, A7: a manager does what its model does, for any commands', async () => {
  await checkProperty('kit commands', kitCommandsProperty(createSubject()))
})

it('A5: an agent that reads its reminders has a clean log, for any events', async () => {
  await checkProperty('kit ledger', kitLedgerProperty(createSubject()))
})

it.each(['acknowledges-a-refused-message', 'returns-an-accepted-message', 'two-deliveries-in-flight'])(
  'the commands notice a manager that %s',
  (name) => {
    const fault = [...registryFaults, ...deliveryFaults].find((one) => one.name === name)
    expect(fault).toBeDefined()
    const details = fc.check(kitCommandsProperty(createSubject(fault)), { numRuns: 2000, seed: 1, endOnFailure: true })
    expect(details.failed).toBe(true)
  },
)

it('a command of a user is compared too', () => {
  const failAll = managerCommand('fail all', {
    model: () => [],
    real: ({ manager }) => manager.getRunningTasks().map(({ id }) => manager.failTask(id, 'over')),
  })
  const { model, real } = createManagerPair()
  failAll.run(model, real)
  real.manager.registerTask({ id: 'x', subagentName: 'helper', goalPrompt: 'help' })
  expect(() => failAll.run(model, real)).toThrow(
    'fail all: the manager returned or threw something else than its model',
  )
})

it('a command that changes only the manager is noticed', () => {
  const { model, real } = createManagerPair()
  const sneak = managerCommand('sneak', {
    model: () => undefined,
    real: ({ manager }) => void manager.registerTask({ id: 'x', subagentName: 'helper', goalPrompt: 'help' }),
  })
  expect(() => sneak.run(model, real)).toThrow('after sneak: the records or free slots differ')
})

it('a manager accepts the drawn inputs', async () => {
  await checkProperty(
    'task inputs',
    fc.property(taskInputs({ owners: ['main', 'sub'] }), (input) => {
      const { manager, clock } = createManagerPair().real
      const { id, owner } = manager.registerTask(input)
      expect({ id, owner }).toEqual({ id: input.id, owner: input.owner ?? 'main' })
      manager.cancelTask(id)
      expect(clock.pending).toBe(0)
    }),
  )
})
