/** fast-check arbitraries for your own properties: inputs, outputs and events of tasks, and scripts of racing actors. */
import fc from 'fast-check'
import type { OutputObject } from '../../machines/records.js'
import type { RegisterTaskInput } from '../protocol/async-tasks.js'

/** Options of `taskInputs` and `taskEvents`. */
export interface TaskInputOptions {
  /**
   * The ids to draw from. Pass few ids, so that several tasks get the same one. Default: short words in `taskInputs`; `a`, `b` and `c` in `taskEvents`.
   */
  readonly ids?: readonly string[]
  /** The owners to draw from. Default: only `main`. */
  readonly owners?: readonly string[]
}

/**
 * Draws inputs for `registerTask` and `launch`.
 * @param options the ids and owners to draw from
 * @returns an arbitrary of inputs
 * @example
 * fc.property(taskInputs({ ids: ['a', 'b'] }), (input) => manager.registerTask(input).id === input.id)
 */
export function taskInputs({ ids, owners = ['main'] }: TaskInputOptions = {}): fc.Arbitrary<RegisterTaskInput> {
  return fc.record(
    {
      id: ids === undefined ? fc.stringMatching(/^[a-z]{1,8}$/) : fc.constantFrom(...ids),
      subagentName: fc.constantFrom('helper', 'researcher', 'reviewer'),
      goalPrompt: fc.string({ maxLength: 40 }),
      owner: fc.constantFrom(...owners),
      timeoutMs: fc.integer({ min: 1, max: 3_600_000 }),
    },
    { requiredKeys: ['id', 'subagentName', 'goalPrompt'] },
  )
}

/**
 * Draws outputs of runs: mostly with the documented fields, sometimes any JSON object.
 * @returns an arbitrary of outputs
 * @example
 * fc.property(taskOutputs(), (output) => manager.completeTask('a', output))
 */
export function taskOutputs(): fc.Arbitrary<OutputObject> {
  const usual = fc.record(
    {
      final_message: fc.string({ maxLength: 60 }),
      terminate_reason: fc.constantFrom('GOAL', 'MAX_TURNS', 'ERROR'),
      emitted_vars: fc.dictionary(fc.stringMatching(/^[a-z_]{1,8}$/), fc.jsonValue(), { maxKeys: 3 }),
    },
    { requiredKeys: [] },
  )
  const any = fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue(), { maxKeys: 3 })
  return fc.oneof({ weight: 4, arbitrary: usual }, { weight: 1, arbitrary: any })
}

/** An event of a task, or time that passes. */
export type TaskEvent =
  | { readonly type: 'register'; readonly id: string; readonly owner: string }
  | { readonly type: 'complete'; readonly id: string; readonly output: OutputObject }
  | { readonly type: 'fail'; readonly id: string; readonly error: string }
  | { readonly type: 'cancel'; readonly id: string }
  | { readonly type: 'advance'; readonly ms: number }

/**
 * Draws sequences of events in any order: a task may end before it is registered, end twice, or have an id that was used before.
 * @param options the ids and owners to draw from, and `maxLength`, the maximum number of events (default 20)
 * @returns an arbitrary of lists of events
 * @example
 * fc.property(taskEvents(), (events) => {
 *   for (const event of events) if (event.type === 'complete') manager.completeTask(event.id, event.output)
 * })
 */
export function taskEvents(
  options: TaskInputOptions & { readonly maxLength?: number } = {},
): fc.Arbitrary<TaskEvent[]> {
  const { ids = ['a', 'b', 'c'], owners = ['main'], maxLength = 20 } = options
  const id = fc.constantFrom(...ids)
  const event: fc.Arbitrary<TaskEvent> = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ type: fc.constant('register' as const), id, owner: fc.constantFrom(...owners) }),
    },
    { weight: 3, arbitrary: fc.record({ type: fc.constant('complete' as const), id, output: taskOutputs() }) },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant('fail' as const), id, error: fc.string({ maxLength: 20 }) }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('cancel' as const), id }) },
    {
      weight: 2,
      arbitrary: fc.record({ type: fc.constant('advance' as const), ms: fc.constantFrom(0, 1, 1000, 60_000) }),
    },
  )
  return fc.array(event, { maxLength, size: 'max' })
}

/** Options of `raceScripts`. */
export interface RaceScriptOptions {
  /** The names of the actors that every script has. Default: none. */
  readonly actors?: readonly string[]
  /**
   * The maximum number of other actors, which are called `actor 1`, `actor 2` and so on. Default 3. Without `actors`, a script has at least one of them.
   */
  readonly maxOthers?: number
  /** The maximum number of steps of an actor. Default 5. */
  readonly maxSteps?: number
}

/**
 * Draws scripts of racing actors. A script has a list of steps for each actor. A step is data, which the option `actors` of `exploreRaces` turns into a
 * function.
 * @param step an arbitrary of one step. Its values should shrink and print well, as strings do
 * @param options the names of the actors, and the limits of actors and steps
 * @returns an arbitrary of scripts, each an object with the steps of each actor by its name
 * @example
 * await exploreRaces({
 *   inputs: raceScripts(fc.constantFrom('submit', 'cancel')),
 *   setup: (race) => createWorld(race),
 *   actors: (world, script) =>
 *     Object.fromEntries(Object.entries(script).map(([name, steps]) => [name, steps.map((step) => () => world[step]())])),
 * })
 */
export function raceScripts<Step>(
  step: fc.Arbitrary<Step>,
  { actors = [], maxOthers = 3, maxSteps = 5 }: RaceScriptOptions = {},
): fc.Arbitrary<Record<string, Step[]>> {
  const steps = fc.array(step, { minLength: 1, maxLength: maxSteps })
  return fc
    .tuple(
      fc.tuple(...actors.map(() => steps)),
      fc.array(steps, { minLength: actors.length === 0 ? 1 : 0, maxLength: maxOthers }),
    )
    .map(([named, others]) =>
      Object.fromEntries([
        ...actors.map((name, index): [string, Step[]] => [name, named[index] ?? []]),
        ...others.map((all, index): [string, Step[]] => [`actor ${index + 1}`, all]),
      ]),
    )
}
