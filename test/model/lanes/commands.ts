/**
 * Commands for `fc.commands` that do everything to a task manager and its instances, and compare it with the model after each. A user
 * of the kit mixes in commands of their own: whatever takes a `LaneModel` and a `LaneHost`, or what extends both.
 */
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type fc from 'fast-check'
import type { Answer, LaneAction, LaneInstance } from './actions.js'
import { laneActions } from './arbitraries.js'
import { createLaneHost, type LaneHost, type LaneHostOptions } from './host.js'
import { createLaneModel, type LaneModel } from './model.js'
import type { LaneLogEntry, LaneView } from './side.js'

/** A command of the lanes, or one of yours. */
export type LaneCommand<Model extends LaneModel = LaneModel, Host extends LaneHost = LaneHost> = fc.AsyncCommand<
  Model,
  Host
>

/** What both sides did alike in one step. */
export interface LaneStep {
  /** What was done. */
  readonly action: LaneAction | string
  /** Of an action of these commands that does not take time. */
  readonly answer?: Answer
  /** What happened meanwhile. */
  readonly log: readonly LaneLogEntry[]
  /** How both sides look after it. */
  readonly view: LaneView
}

/** Options of `laneCommands`. */
export interface LaneCommandsOptions {
  /** What may be connected; the same as the host's. */
  readonly instances?: readonly LaneInstance[]
  /** Called after each command on which both sides agreed: to check invariants of your own, or to see what was reached. */
  readonly afterEach?: (step: LaneStep, model: LaneModel, host: LaneHost) => void
}

/**
 * A fresh model and a fresh task manager with the same limits and instances, for `fc.asyncModelRun`.
 * @example
 * fc.asyncModelRun(() => createLanePair({ settings, createTaskManager }), commands)
 */
export function createLanePair(options: LaneHostOptions): { readonly model: LaneModel; readonly real: LaneHost } {
  const { settings, start, instances } = options
  return { model: createLaneModel(settings, start, instances), real: createLaneHost(options) }
}

/**
 * Everything that can be done to a task manager and its instances, each compared with the model.
 * @example
 * fc.assert(
 *   fc.asyncProperty(laneSettings, fc.commands([...laneCommands(), yours]), (settings, commands) =>
 *     fc.asyncModelRun(() => createLanePair({ settings, createTaskManager: yourWiring }), commands),
 *   ),
 * )
 */
export function laneCommands(options: LaneCommandsOptions = {}): fc.Arbitrary<LaneCommand>[] {
  return [laneActions(options.instances).map((action) => laneCommand(action, options.afterEach))]
}

/** One command that takes one action. */
export function laneCommand(action: LaneAction, afterEach?: LaneCommandsOptions['afterEach']): LaneCommand {
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
 * Takes one action on both sides, lets everything come in that follows from it, and compares.
 * @throws AssertionError when an answer, what was told, or what can be seen differs
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
 * Lets everything come in, and compares what was told and what can be seen; for the end of a command of your own.
 * @param action what was done, for the message of the error
 * @throws AssertionError
 */
export async function compareLanes(model: LaneModel, host: LaneHost, action: LaneAction | string): Promise<LaneStep> {
  await model.drain()
  await host.drain()
  const log = model.takeLog()
  const view = model.observe()
  compare('what was told', host.takeLog(), log, action)
  compare('what can be seen', host.observe(), view, action)
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
