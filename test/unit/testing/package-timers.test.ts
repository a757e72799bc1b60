/** What the timers and reports of this package do in a race: their names, deadlines, polls, and what is printed. */
import { inspect } from 'node:util'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createAgentTasks, type AgentTasksOptions } from 'agent-tasks'
import { InstanceManager, localInstance, TaskManager } from 'agent-tasks/server'
import { exploreRaces, RaceError, replayRace, type Race, type RaceOptions } from 'agent-tasks/testing'
import { hastyHost } from '../../../docs/examples/testing/first-host.js'

const failureOf = async (exploration: Promise<unknown>): Promise<RaceError> => {
  const error = await exploration.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(error instanceof RaceError)) throw new Error('the race did not fail', { cause: error })
  return error
}

const goldTask = { id: 'gold', subagentName: 'digger', goalPrompt: 'Find gold' }

/** A race with a host of this package. Its turns end when the model answers. */
const hostRace = (
  options: Partial<RaceOptions<ReturnType<typeof createAgentTasks>>>,
  given: (race: Race) => AgentTasksOptions = () => ({}),
): RaceOptions<ReturnType<typeof createAgentTasks>> => ({
  setup: (race) =>
    createAgentTasks({
      clock: race.clock,
      isAgentBusy: () => false,
      triggerAgentTurn: () => race.pause('the model answers'),
      ...given(race),
    }),
  actors: {
    agent: [(tasks) => void tasks.getAsyncTaskManager().registerTask(goldTask)],
    worker: [(tasks) => void tasks.getAsyncTaskManager().completeTask('gold', {})],
  },
  teardown: (tasks) => tasks.dispose(),
  ...options,
})

/** The names of the timers that take turns in any order. */
const timersOf = async <World>(race: RaceOptions<World>): Promise<string[]> => {
  const names = new Set<string>()
  for (let seed = 0; seed < 12; seed += 1) {
    const { run } = await failureOf(
      exploreRaces({ ...race, atEnd: { never: () => false }, numRuns: 1, seed, endOnFailure: true }),
    )
    for (const { actor, step } of run.events) if (actor === 'clock') names.add(step)
  }
  return [...names].toSorted()
}

describe('a first host, which is busy only after an await', () => {
  it('is found, on one screen, with the timeline last', async () => {
    const error = await failureOf(exploreRaces({ ...hastyHost, seed: 7 }))
    expect(error.run.failure?.message).toBe("'one turn at a time' does not hold")
    expect(error.order).toHaveLength(6)
    expect(error.timeline).toContain('0 ms  clock                     delivery to main')
    const screen = [...error.timeline.split('\n'), "  => 'one turn at a time' does not hold"]
    expect(screen.length).toBeLessThanOrEqual(25)
    expect(Math.max(...screen.map((line) => line.length))).toBeLessThanOrEqual(100)
    // What Node and test runners print: nothing follows the timeline.
    expect(error.message.endsWith(screen.join('\n'))).toBe(true)
    expect(inspect(error)).toBe(`[RaceError: ${error.message}]`)
  })

  it('is found within the first draws: no deadline and no poll buries it', async () => {
    const draws: number[] = []
    for (let seed = 0; seed < 10; seed += 1) {
      draws.push((await failureOf(exploreRaces({ ...hastyHost, seed, endOnFailure: true }))).runs)
    }
    expect(Math.max(...draws)).toBeLessThan(100)
  })
})

describe('a deadline', () => {
  const limited = (deadlines: boolean): RaceOptions<ReturnType<typeof createAgentTasks>> =>
    hostRace(
      {
        deadlines,
        actors: {
          agent: [(tasks) => void tasks.getAsyncTaskManager().registerTask({ ...goldTask, timeoutMs: 10 })],
          user: [
            (tasks, race) => {
              const { reminder } = tasks.beforeTurn()
              return race.pause('the user is answered').then(() => reminder && tasks.afterTurn({ accepted: true }))
            },
          ],
          worker: [(tasks) => void tasks.getAsyncTaskManager().completeTask('gold', {})],
        },
      },
      () => ({ turnTimeoutMs: 50, autoTrigger: { deliveryTimeoutMs: 20 } }),
    )

  it('takes no part unless it is asked for', async () => {
    expect(await timersOf(limited(false))).toEqual(['delivery to main'])
  })

  it('takes part with deadlines: true, under its name', async () => {
    expect(await timersOf(limited(true))).toEqual(
      expect.arrayContaining(['deadline of gold', 'delivery to main', 'time limit of the delivery to main']),
    )
  })

  it('of a task does not hide the back-off of another, which takes part', async () => {
    const race = hostRace({
      actors: {
        agent: [
          (tasks) => {
            const manager = tasks.getAsyncTaskManager()
            manager.registerTask({ ...goldTask, timeoutMs: 10 })
            manager.launch(
              {
                id: 'silver',
                subagentName: 'digger',
                goalPrompt: 'dig',
                retry: { attempts: 2, on: ['start-failed', 'interrupted'] },
              },
              { run: () => Promise.reject(Object.assign(new Error('no silver'), { code: 'INTERRUPTED' })) },
            )
          },
        ],
      },
    })
    expect(await timersOf(race)).toContain('retry of silver')
  })

  it('that a step waits for is named when nothing is left', async () => {
    const error = await failureOf(
      exploreRaces(
        hostRace({
          actors: {
            agent: [
              (tasks) => {
                const manager = tasks.getAsyncTaskManager()
                manager.registerTask({ ...goldTask, timeoutMs: 900_000 })
                return manager.waitFor(['gold'], { timeoutMs: 1000 })
              },
            ],
          },
        }),
      ),
    )
    expect(error.run.failure).toMatchObject({ kind: 'hang' })
    expect(error.run.failure?.message).toContain(
      "These deadlines are reached only with the option deadlines: true: 'deadline of gold', 'time limit of a wait for gold'.",
    )
  })

  it('of yours is a timer with that label', async () => {
    const race = (deadlines: boolean): RaceOptions<Race> => ({
      deadlines,
      setup: (race) => race,
      actors: {
        a: [({ clock }) => void clock.setTimeout(() => undefined, 5, { name: 'limit of the model', kind: 'deadline' })],
      },
    })
    expect(await timersOf(race(false))).toEqual([])
    expect(await timersOf(race(true))).toEqual(['limit of the model'])
  })

  it('that is cleared is not named', async () => {
    const error = await failureOf(
      exploreRaces<Race>({
        setup: (race) => race,
        actors: {
          a: [
            ({ clock }) => {
              const set = (name: string) => clock.setTimeout(() => undefined, 5, { name, kind: 'deadline' })
              clock.clearTimeout(set('the first limit'))
              set('the second limit')
              return new Promise(() => undefined)
            },
          ],
        },
      }),
    )
    expect(error.run.failure?.message).toContain("the option deadlines: true: 'the second limit'.")
  })

  it('of a command takes no part either, nor does the removal of old tasks', async () => {
    const race: RaceOptions<TaskManager> = {
      setup: ({ clock, pause }) => {
        const instances = new InstanceManager({ clock })
        instances.connect(
          localInstance({ id: 'browser', clock, tools: [{ name: 'click', execute: () => pause('it clicks') }] }),
        )
        return new TaskManager({ instances, clock })
      },
      actors: {
        user: [
          (tasks) =>
            void tasks.submitTask({ task_name: 'Click', instanceId: 'browser', commands: [{ tool_name: 'click' }] }),
        ],
      },
      teardown: (tasks) => tasks.dispose(),
    }
    expect(await timersOf(race)).toEqual([])
    expect(await timersOf({ ...race, deadlines: true })).toEqual([expect.stringMatching(/^deadline of click in /u)])
  })
})

describe('a poll', () => {
  it('takes no turn twice in a row while something else can happen, and goes on when nothing else can', async () => {
    let looks = 0
    const { orders } = await exploreRaces<Race>({
      setup: (race) => {
        looks = 0
        const look = (): void => {
          looks += 1
          if (looks < 3) race.clock.setTimeout(look, 10, { name: 'look', kind: 'poll' })
        }
        look()
        return race
      },
      actors: { a: [() => undefined, () => undefined] },
      atEnd: { 'it has looked three times': () => looks === 3 },
      mode: 'exhaustive',
    })
    // Of the 6 orders of 2 steps and 2 looks, those with two looks in a row before a step are left out.
    expect(orders).toBe(4)
  })
})

describe('the clock', () => {
  it('does not go on for ever when an order is at its end: others go first', async () => {
    const race: RaceOptions<Race> = {
      setup: (race) => {
        const again = (): void => void race.clock.setTimeout(again, 1000)
        again()
        return race
      },
      actors: { a: [() => undefined, () => undefined] },
      drainMs: 5000,
    }
    expect((await replayRace({ ...race, order: ['clock'] })).order.slice(0, 3)).toEqual(['clock', 'a', 'a'])
  })
})

describe('what is reported', () => {
  afterEach(() => void vi.restoreAllMocks())

  /** An agent that refuses each message. */
  const refusing = (given: AgentTasksOptions = {}) =>
    hostRace(
      {
        numRuns: 50,
        actors: {
          worker: [
            (tasks) => {
              tasks.getAsyncTaskManager().registerTask(goldTask)
              tasks.getAsyncTaskManager().completeTask('gold', {})
            },
          ],
        },
        atEnd: {
          'the agent has the result': (tasks) => tasks.getAsyncTaskManager().getTask('gold')?.delivery === 'delivered',
        },
      },
      () => ({ ...given, triggerAgentTurn: () => Promise.reject(new Error('the session is gone')) }),
    )

  it('prints nothing while orders are explored, and is in the failure and its timeline', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const error = await failureOf(exploreRaces(refusing()))
    expect(printed).not.toHaveBeenCalled()
    const { reports = [] } = error.run.failure ?? {}
    expect(reports.length).toBeGreaterThan(0)
    expect(reports[0]).toMatchObject({
      error: new Error('the session is gone'),
      from: { source: 'delivery', owner: 'main' },
    })
    expect(error.timeline).toContain('onError (delivery): the session is gone')
  })

  it('in the setup is shown before the first event', async () => {
    const error = await failureOf(
      exploreRaces<Race>({
        setup: (race) => {
          race.onError(new Error('no session'), { source: 'setup of mine' })
          return race
        },
        actors: { a: [() => undefined] },
        atEnd: { never: () => false },
      }),
    )
    expect(error.timeline).toMatch(/^ +setup +onError \(setup of mine\): no session$/mu)
    expect(error.run.failure?.reports).toMatchObject([{ after: 0 }])
  })

  it('goes to the onError of the host, if it has one', async () => {
    const own = vi.fn()
    const error = await failureOf(exploreRaces(refusing({ onError: own })))
    expect(own).toHaveBeenCalled()
    expect(error.run.failure?.reports).toEqual([])
  })
})

describe('a timeline', () => {
  it('wraps long lines and shortens long names, within 100 columns', async () => {
    const name = 'an actor whose name is longer than what a screen has room for in one of its four columns'
    const { timeline } = await replayRace<Race>({
      setup: (race) => race,
      actors: { [name]: [{ label: name, run: (race) => race.note(`${'word '.repeat(40)}end ${'x'.repeat(100)}`) }] },
      order: [name],
    })
    expect(Math.max(...timeline.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100)
    expect(timeline.match(/word/gu)).toHaveLength(40)
    expect(timeline.replaceAll(/\s+/gu, '')).toContain('x'.repeat(100))
    expect(timeline).toContain('…')
  })
})
