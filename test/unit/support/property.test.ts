/** `checkProperty`: what a failure prints is enough to replay it. */
import fc from 'fast-check'
import { afterEach, expect, it, vi } from 'vitest'
import { kitCommandsProperty } from '../../model/kit.property.js'
import { laneModelProperty } from '../../model/lanes.property.js'
import { registryProperty } from '../../model/registry.property.js'
import { laneFaults } from '../../race/lane-faults.js'
import { managerCommands } from '../../../src/testing/manager-commands.js'
import { createManagerPair, managerCommand } from '../../../src/testing/manager-pair.js'
import { registryFaults } from '../../support/planted-faults.js'
import { checkProperty } from '../../support/property.js'
import { createSubject } from '../../support/subject.js'

afterEach(() => vi.unstubAllEnvs())

/** The message of a property that fails, and the variables of the command in it. */
async function failureOf(property: fc.IRawProperty<unknown>, parameters: fc.Parameters<unknown> = {}) {
  const { message } = await checkProperty('broken', property, parameters).then(
    () => expect.fail('the property holds'),
    (error: unknown) => error as Error,
  )
  const [, seed = '', path] = /^replay: FC_SEED=(\S+)(?: FC_PATH=(\S+))? npm test/m.exec(message) ?? []
  const [counterexample] = /^Counterexample: .*$/m.exec(message) ?? []
  return { message, seed, path, counterexample }
}

const manager = createSubject(registryFaults.find(({ name }) => name === 'always-room'))
const broken: readonly [string, () => fc.IRawProperty<unknown>][] = [
  ['the registry', () => registryProperty(manager)],
  ['the commands of the kit', () => kitCommandsProperty(manager)],
  [
    'the lanes',
    () => laneModelProperty({ createTaskManager: laneFaults.find((fault) => fault.isForModel !== true)!.create }),
  ],
]

it.each(broken)('a path that %s printed replays its counterexample at once', async (_, create) => {
  vi.stubEnv('FC_NUM_RUNS', '2000')
  const found = await failureOf(create())
  vi.stubEnv('FC_SEED', found.seed)
  vi.stubEnv('FC_PATH', found.path ?? '')
  const replayed = await failureOf(create())
  expect(replayed.counterexample).toBe(found.counterexample)
  expect(replayed.message).toContain('Property failed after 1 tests')
})

it('a property with fc.commands prints its seed alone, which finds the same', async () => {
  const always = managerCommand('fail', { model: () => 1, real: () => 2 })
  const property = () =>
    fc.property(fc.commands([...managerCommands(), fc.constant(always)]), (all) => fc.modelRun(createManagerPair, all))
  const found = await failureOf(property())
  expect(found.path).toBeUndefined()
  expect((await failureOf(property(), { seed: Number(found.seed) })).counterexample).toBe(found.counterexample)
})
