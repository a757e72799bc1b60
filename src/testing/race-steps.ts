/** Turns the steps of an actor, from a list or a generator, into a function that returns the next step. */
import { isThenable } from '../isolation/isolated-call.js'
import type { Race, RaceActor, RaceGenerator, RaceStep } from './race-options.js'

export interface NextStep {
  readonly label: string
  /**
   * Takes the step.
   * @returns the result of the step, possibly a promise
   */
  readonly run: () => unknown
}

/** Returns the next step, or `undefined` when the actor is done. Returns the same step until that step was run. */
export type Steps = () => NextStep | undefined

/** @param begun how many steps the actor has begun in earlier lives. A list continues after them. A generator that has begun is over */
export function stepsOf<World>(actor: RaceActor<World>, world: World, race: Race, begun: number): Steps {
  if (typeof actor !== 'function') return stepsOfList(actor, world, race, begun)
  return begun === 0 ? stepsOfGenerator(actor, world, race) : () => undefined
}

function stepsOfList<World>(steps: readonly RaceStep<World>[], world: World, race: Race, begun: number): Steps {
  let taken = begun
  return () => {
    const step = steps[taken]
    if (step === undefined) return undefined
    const run = typeof step === 'function' ? step : step.run
    const label = typeof step === 'function' ? step.name : step.label
    return {
      label: label === '' ? `step ${taken + 1}` : label,
      run: () => {
        taken += 1
        return run(world, race)
      },
    }
  }
}

function stepsOfGenerator<World>(create: RaceGenerator<World>, world: World, race: Race): Steps {
  let steps: Generator<unknown, unknown> | AsyncGenerator<unknown, unknown> | undefined
  let label = 'starts'
  let isDone = false
  const update = (result: IteratorResult<unknown, unknown>): void => {
    isDone = result.done === true
    label = !isDone && typeof result.value === 'string' ? result.value : 'goes on'
  }
  return () => {
    if (isDone) return undefined
    return {
      label,
      run: () => {
        // `update` sets it to false again, unless the generator has ended or thrown.
        isDone = true
        steps ??= create(world, race)
        const result = steps.next()
        if (isThenable(result)) return result.then(update)
        update(result)
        return undefined
      },
    }
  }
}
