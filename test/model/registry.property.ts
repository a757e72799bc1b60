/**
 * The registry against its model (A1 to A4, A7 to A9, and A5 for the ledger): both take the same actions, and after each of them the
 * answers, the events and everything observable must be the same.
 */
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { commandList } from '../support/command-list.js'
import type { Subject } from '../support/subject.js'
import {
  crowdedSettings,
  forgetfulSettings,
  ledgerActions,
  namesakeActions,
  obliviousSettings,
  registrySettings,
  roomySettings,
  talkingActions,
  topActions,
  waitingActions,
  type RegistrySettings,
  type TopAction,
} from './actions.js'
import type { Host } from './host.js'
import { createModelledHost } from './modelled-host.js'
import { createRealHost } from './real-host.js'

/** The time at which the clocks start. */
const START = 1000

/** Takes one action on both sides and compares everything. */
async function step(model: Host, real: Host, action: TopAction): Promise<void> {
  const expected: Record<string, unknown> = { answer: model.act(action) }
  const actual: Record<string, unknown> = { answer: real.act(action) }
  await model.drain()
  await real.drain()
  Object.assign(expected, { log: model.takeLog(), state: model.observe() })
  Object.assign(actual, { log: real.takeLog(), state: real.observe() })
  if (!isDeepStrictEqual(actual, expected)) {
    for (const part of ['log', 'answer', 'state']) {
      assert.deepStrictEqual(actual[part], expected[part], `after ${JSON.stringify(action)}`)
    }
  }
}

/** Takes actions on the model and the subject, one after the other. @throws at the first difference */
export async function compare(
  subject: Subject,
  settings: RegistrySettings,
  actions: readonly TopAction[],
): Promise<void> {
  const model = createModelledHost(settings, START)
  const real = createRealHost(subject, settings, START)
  for (const action of actions) await step(model, real, action)
}

const command = (action: TopAction): fc.AsyncCommand<Host, Host> => ({
  check: () => true,
  run: (model, real) => step(model, real, action),
  toString: () => JSON.stringify(action),
})

/** Any sequence of actions, and a disposal at the end. */
export const registryProperty = (subject: Subject) => modelled(subject, registrySettings, topActions)

/** Few ids, which are used again as soon as their records are pruned, while the runs go on (A1, A4). */
export const namesakeProperty = (subject: Subject) => modelled(subject, obliviousSettings, namesakeActions)

/** The ledger only: all kinds of leases, released owners, cut messages (A5, A7). */
export const ledgerProperty = (subject: Subject) => modelled(subject, forgetfulSettings, ledgerActions)

/** Tasks that wait, are repeated, exceed a budget, ask and are told something (F6 to F10). */
export const waitingProperty = (subject: Subject) => modelled(subject, crowdedSettings, waitingActions)

/** Runs that ask and are told something (F6, F7). */
export const talkingProperty = (subject: Subject) => modelled(subject, roomySettings, talkingActions)

function modelled(subject: Subject, of: fc.Arbitrary<RegistrySettings>, actions: fc.Arbitrary<TopAction>[]) {
  const commands = commandList(
    actions.map((each) => each.map(command)),
    40,
  )
  return fc.asyncProperty(of, commands, async (settings, all) => {
    const model = createModelledHost(settings, START)
    const real = createRealHost(subject, settings, START)
    await fc.asyncModelRun(() => ({ model, real }), all)
    await step(model, real, { do: 'dispose' })
    // Nothing may follow (A9).
    await step(model, real, { do: 'advance', ms: 100_000 })
  })
}
