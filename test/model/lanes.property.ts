/**
 * The task manager and its instances against their model (S1 to S9): both take the same actions, and after each of them the answers,
 * the events and everything observable must be the same, down to the number of timers.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { commandList } from '../support/command-list.js'
import type { LaneAction, LaneSettings } from './lanes/actions.js'
import { laneSettings } from './lanes/arbitraries.js'
import { createLanePair, laneCommands, takeLaneAction, type LaneStep } from './lanes/commands.js'
import type { LaneHostOptions } from './lanes/host.js'

/** The time at which the clocks start. */
const START = 1000

/** How the task manager is made; a planted fault makes it wrong. */
export type Wiring = Pick<LaneHostOptions, 'createTaskManager'>

/** Any sequence of actions, and a disposal at the end. `onStep` is called after each step on which both sides agreed. */
export function laneModelProperty(wiring: Wiring = {}, onStep: (step: LaneStep) => void = () => undefined) {
  const command = laneCommands((step, model, host) => {
    // S9: a timer that is left behind holds memory.
    assert.equal(host.timers, model.timers, `timers are left after ${JSON.stringify(step.action)}`)
    onStep(step)
  })
  return fc.asyncProperty(laneSettings, commandList([command], 40), async (settings, all) => {
    const pair = createSides(settings, wiring)
    await fc.asyncModelRun(() => pair, all)
    for (const action of ending) onStep(await takeLaneAction(pair.model, pair.real, action))
    assert.deepEqual(pair.real.observe().depths, {}, 'a lane is left after dispose')
  })
}

/** Disposes of both sides; nothing may follow. */
const ending: readonly LaneAction[] = [
  { do: 'dispose' },
  { do: 'advance', ms: 50 },
  { do: 'submit', commands: [{ tool: 'waits' }] },
  { do: 'advance', ms: 10_000 },
]

/** Takes actions on both sides, one after the other. @throws at the first difference */
export async function compareOver(
  actions: readonly LaneAction[],
  settings: Partial<LaneSettings> = {},
  wiring: Wiring = {},
): Promise<void> {
  const { model, real } = createSides({ ...roomySettings, ...settings }, wiring)
  for (const action of [...actions, ...ending]) await takeLaneAction(model, real, action)
}

const roomySettings: LaneSettings = {
  commandTimeout: 200,
  maxQueueSize: 5,
  abortGraceMs: 50,
  retentionMs: 5000,
  maxRetained: 100,
}

const createSides = (settings: LaneSettings, wiring: Wiring) => createLanePair({ settings, start: START, ...wiring })
