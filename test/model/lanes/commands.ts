/** Commands for `fc.commands`: each takes one action on a task manager and on its model, and compares both. */
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type fc from 'fast-check'
import type { Answer } from '../drawing.js'
import type { LaneAction } from './actions.js'
import { laneActions } from './arbitraries.js'
import { createLaneHost, type LaneHost, type LaneHostOptions } from './host.js'
import { createLaneModel, type LaneModel } from './model.js'
import type { LaneLogEntry, LaneView } from './side.js'

/** A command. Other properties extend the model and the host with what they need. */
export type LaneCommand<Model extends LaneModel = LaneModel, Host extends LaneHost = LaneHost> = fc.AsyncCommand<
  Model,
  Host
>

/** A step on which both sides agreed. */
export interface LaneStep {
  /** The action, or its name in a command that takes none. */
  readonly action: LaneAction | string
  /** The answer, unless the action was `advance`. */
  readonly answer?: Answer
  readonly log: readonly LaneLogEntry[]
  readonly view: LaneView
}

/** Called after each command on which both sides agreed. */
export type AfterEach = (step: LaneStep, model: LaneModel, host: LaneHost) => void

/** Makes a model and a task manager with the same limits, for `fc.asyncModelRun`. */
export function createLanePair(options: LaneHostOptions): { readonly model: LaneModel; readonly real: LaneHost } {
  return { model: createLaneModel(options.settings, options.start), real: createLaneHost(options) }
}

/** Commands for all actions. */
export function laneCommands(afterEach?: AfterEach): fc.Arbitrary<LaneCommand> {
  return laneActions().map((action) => laneCommand(action, afterEach))
}

/** A command that takes one action. */
export function laneCommand(action: LaneAction, afterEach?: AfterEach): LaneCommand {
  return {
    check: () => true,
    run: async (model, host) => {
      const step = await takeLaneAction(model, host, action)
      afterEach?.(step, model, host)
    },
    toString: () => JSON.stringify(action),
  }
}

/**
 * Takes an action on both sides, completes what follows from it, and compares.
 * @throws AssertionError when the answers, the logs or the views differ
 */
export async function takeLaneAction(model: LaneModel, host: LaneHost, action: LaneAction): Promise<LaneStep> {
  if (action.do === 'advance') {
    await model.advance(action.ms)
    await host.advance(action.ms)
    return compareLanes(model, host, action)
  }
  const answer = model.act(action)
  compare('the answer', host.act(action), answer, action)
  return { ...(await compareLanes(model, host, action)), answer }
}

/**
 * Completes what is under way, and compares the logs and the views; ends a command that does not use `takeLaneAction`.
 * @param action for the error message
 * @throws AssertionError
 */
export async function compareLanes(model: LaneModel, host: LaneHost, action: LaneAction | string): Promise<LaneStep> {
  await model.drain()
  await host.drain()
  const log = model.takeLog()
  const view = model.observe()
  compare('the log', host.takeLog(), log, action)
  compare('the view', host.observe(), view, action)
  for (const task of host.tasks.listTasks()) assert(Object.isFrozen(task), `the record of ${task.id} is not frozen`)
  return { action, log, view }
}

function compare(what: string, actual: unknown, expected: unknown, action: LaneAction | string): void {
  if (isDeepStrictEqual(actual, expected)) return
  assert.deepStrictEqual(actual, expected, difference(what, actual, expected, action))
}

function difference(what: string, actual: unknown, expected: unknown, action: LaneAction | string): string {
  const done = typeof action === 'string' ? action : JSON.stringify(action)
  return `${what} differs after ${done}\nexpected: ${JSON.stringify(expected)}\nactual:   ${JSON.stringify(actual)}`
}
