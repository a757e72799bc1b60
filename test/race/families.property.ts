/** Families in any order of launches, ends, deadlines and cancellations: nothing of a cancelled family runs, and every end is told once (F5). */
import fc from 'fast-check'
import { createAgentTasks, type AgentTasks, type Runner } from '../../src/index.js'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { raceOrders, type Race, type RaceOptions } from '../../src/testing/index.js'
import { timelineOf } from '../../src/testing/race-report.js'
import { chooserOf } from '../../src/testing/race-order.js'
import { runRace } from '../../src/testing/race-run.js'
import { FamilyError } from '../../src/errors.js'
import { ownerOfRun } from '../../src/parts.js'

/** What a user does with the nth task that was launched. */
export interface FamilyStep {
  readonly do: 'cancel' | 'complete'
  readonly nth: number
}

export interface FamilyScript {
  /** How many tasks each run launches, by its depth. */
  readonly children: readonly number[]
  /** Whether a run waits for its tasks before it ends. */
  readonly waits: boolean
  /** The time limit of the first task. */
  readonly timeoutMs: number | undefined
  readonly notifyCancelled: boolean
  readonly user: readonly FamilyStep[]
}

const step = fc.record({
  do: fc.constantFrom('cancel' as const, 'cancel' as const, 'complete' as const),
  nth: fc.nat(3),
})

const familyScripts: fc.Arbitrary<FamilyScript> = fc.record({
  children: fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 1, maxLength: 2 }),
  waits: fc.boolean(),
  timeoutMs: fc.constantFrom(undefined, undefined, 1000),
  notifyCancelled: fc.boolean(),
  user: fc.array(step, { maxLength: 3 }),
})

/** Breaks a manager. */
export type FamilySabotage = (manager: AsyncTaskManager) => void

export class FamilyWorld {
  readonly tasks: AgentTasks
  readonly #race: Race
  readonly #script: FamilyScript
  readonly #launched: string[] = []
  /** How often the end of each task was told. */
  readonly #told = new Map<string, number>()
  #problem: string | undefined

  constructor(race: Race, script: FamilyScript, sabotage?: FamilySabotage) {
    this.#race = race
    this.#script = script
    let ids = 0
    this.tasks = createAgentTasks({
      clock: race.clock,
      // A parent must not wait for its own slot.
      maxAsyncTasks: 1,
      notifyCancelled: script.notifyCancelled,
      createId: (prefix) => `${prefix}-${(ids += 1)}`,
      onError: (error, { source }) => {
        if (source !== 'late-result') this.#problem ??= `${source} reported ${String(error)}`
      },
      isAgentBusy: () => false,
      triggerAgentTurn: (_, { taskIds }) => this.#tell(taskIds),
    })
    sabotage?.(this.manager)
    this.manager.settled$.subscribe(({ id, status }) => {
      if (status !== 'cancelled' || script.notifyCancelled) this.#told.set(id, this.#told.get(id) ?? 0)
    })
  }

  get manager(): AsyncTaskManager {
    return this.tasks.getAsyncTaskManager()
  }

  launch(): void {
    const { timeoutMs } = this.#script
    this.#launched.push('t')
    const input = { id: 't', subagentName: 'agent', goalPrompt: 'g', ...(timeoutMs !== undefined && { timeoutMs }) }
    this.manager.launch(input, this.#run(0))
  }

  take({ do: how, nth }: FamilyStep): boolean {
    const id = this.#launched[nth]
    if (id === undefined) return false
    return how === 'cancel' ? this.manager.cancelTask(id) : this.manager.completeTask(id, {})
  }

  /** What must hold after each turn. */
  look(): void {
    if (this.#problem !== undefined) throw new Error(this.#problem)
    for (const { id, status, parentId, owner } of this.manager.getAllTasks()) {
      if (status !== 'running' || parentId === undefined) continue
      const parent = this.manager.getTask(parentId)?.status
      if (parent === 'cancelled') throw new Error(`${id} runs, and its parent ${parentId} was cancelled`)
      const isOwned = owner === ownerOfRun(parentId)
      const above = owner.startsWith('run:') ? this.manager.getTask(owner.slice(4))?.status : 'running'
      if (above !== 'running') throw new Error(`${owner} owns ${id}, and has ended`)
      if (isOwned !== (parent === 'running')) {
        throw new Error(`${owner} owns ${id}, and its parent is ${parent ?? 'gone'}`)
      }
    }
  }

  conclude(): void {
    this.look()
    const left = this.manager.getRunningTasks().map(({ id }) => id)
    if (left.length > 0) throw new Error(`${left.join(', ')} still run(s)`)
    for (const [id, count] of this.#told) if (count !== 1) throw new Error(`the end of ${id} was told ${count} times`)
  }

  #run(depth: number): Runner {
    return async ({ id }, { launch, children, signal }) => {
      for (let n = 0; n < (this.#script.children[depth] ?? 0); n += 1) {
        await this.#race.pause(`${id} goes on`)
        signal.throwIfAborted()
        const child = { id: `${id}.${n}`, subagentName: 'agent', goalPrompt: 'g' }
        try {
          launch(child, this.#run(depth + 1))
          this.#launched.push(child.id)
        } catch (error) {
          if (!(error instanceof FamilyError && error.code === 'PARENT_ENDED')) {
            this.#problem ??= `${id} could not launch: ${String(error)}`
          }
          throw error
        }
      }
      await this.#race.pause(`${id} ends`)
      if (this.#script.waits) {
        const { settled, deliveryId: _ } = await children.waitFor()
        await this.#tell(settled.filter(({ status }) => this.#owes(status)).map((task) => task.id))
      }
      return { final_message: id }
    }
  }

  #owes(status: string): boolean {
    return status !== 'cancelled' || this.#script.notifyCancelled
  }

  #tell(taskIds: readonly string[]): Promise<void> {
    for (const id of taskIds) this.#told.set(id, (this.#told.get(id) ?? 0) + 1)
    return Promise.resolve()
  }
}

/** The race of any script. */
export function familyRace(sabotage?: FamilySabotage): RaceOptions<FamilyWorld, FamilyScript> {
  return {
    name: 'families',
    inputs: familyScripts,
    setup: (race, script) => new FamilyWorld(race, script, sabotage),
    actors: (_, { user }) => ({
      host: [{ label: 'launches the first task', run: (world) => world.launch() }],
      user: user.map((each) => ({
        label: `${each.do}s number ${each.nth}`,
        run: (world: FamilyWorld) => world.take(each),
      })),
    }),
    invariants: { 'nothing of a cancelled family runs': (world) => world.look() },
    atEnd: { 'every end is told once': (world) => world.conclude() },
    teardown: (world) => world.tasks.dispose(),
  }
}

/** The same as a property, for `npm run faults`. */
export const familiesProperty = (sabotage?: FamilySabotage): fc.IRawProperty<unknown> => {
  const race = familyRace(sabotage)
  return fc.asyncProperty(raceOrders(), familyScripts, async (order, script) => {
    const run = await runRace(race, chooserOf(order), script)
    if (run.failure !== undefined) throw new Error(`${run.failure.message}\n${timelineOf(run)}`)
  })
}
