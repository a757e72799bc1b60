/** What the report of a race says about timers, and about code that waits for what a race does not run. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createActor, createMachine } from 'xstate'
import { exploreRaces, RaceError, replayRace, type Race, type RaceOptions } from 'agent-tasks/testing'
import type { RaceStepFunction } from '../../../src/testing/race-options.js'

const lost = async (options: Partial<RaceOptions<Race>>): Promise<RaceError> => {
  const error: unknown = await exploreRaces<Race>({
    setup: (race) => race,
    actors: { a: [() => undefined] },
    numRuns: 1,
    endOnFailure: true,
    ...options,
  }).catch((error: unknown) => error)
  if (!(error instanceof RaceError)) throw new Error('the race did not fail', { cause: error })
  return error
}

describe('a timer in a timeline is named', () => {
  const timersOf = async (options: Partial<RaceOptions<Race>>): Promise<string[]> => {
    const { run } = await lost({ atEnd: { never: () => false }, ...options })
    return run.events.flatMap(({ actor, step }) => (actor === 'clock' ? [step] : []))
  }
  const place = 'race-reports\\.test\\.ts:\\d+'

  it('by the function that set it, and its line', async () => {
    function retryLater({ clock }: Race): void {
      clock.setTimeout(() => undefined, 10)
    }
    const { timeline } = await lost({ actors: { a: [retryLater] }, atEnd: { never: () => false } })
    expect(timeline).toMatch(new RegExp(`10 ms {2}clock {2}timer of retryLater \\(${place}\\)`, 'u'))
  })

  it('by the function that called a library which set it, also after an await', async () => {
    const lamp = createMachine({ initial: 'on', states: { on: { after: { 10: 'off' } }, off: {} } })
    const light: RaceStepFunction<Race> = async function light({ clock }) {
      await Promise.resolve()
      createActor(lamp, { clock }).start()
    }
    const [timer] = await timersOf({ actors: { a: [light] } })
    expect(timer).toMatch(new RegExp(`^timer of light \\(${place}\\)$`, 'u'))
  })

  it('as the timer that has set it, when a library sets one after the other', async () => {
    const blink = createMachine({
      initial: 'on',
      states: { on: { after: { 10: 'off' } }, off: { after: { 10: 'gone' } }, gone: {} },
    })
    const timers = await timersOf({
      actors: {
        a: [
          function start(_, { clock }) {
            createActor(blink, { clock }).start()
          },
        ],
      },
    })
    expect(timers).toHaveLength(2)
    for (const timer of timers) expect(timer).toMatch(/^timer of start /u)
  })

  it('by its turn, when no code of the user is between the race and the call', async () => {
    const [timer] = await timersOf({
      setup: (race) => race,
      actors: {
        a: [(race) => void race.pause('the pause').then(race.clock.setTimeout.bind(undefined, Boolean, 10, undefined))],
      },
    })
    expect(timer).toBe('timer set in the turn of the pause')
    const [ofSetup] = await timersOf({
      setup: (race) => {
        void Promise.resolve().then(race.clock.setTimeout.bind(undefined, Boolean, 10, undefined))
        return race
      },
    })
    expect(ofSetup).toBe('timer set in the setup')
  })

  it('in a replay that passes, and the same way in the run and its replay', async () => {
    const race: RaceOptions<Race> = {
      setup: (race) => race,
      actors: {
        a: [
          function later(_, { clock }) {
            clock.setTimeout(() => undefined, 10)
          },
        ],
      },
    }
    const { timeline, order } = await replayRace({ ...race, order: ['a', 'clock'] })
    expect(timeline).toContain('timer of later (race-reports.test.ts:')
    const failing = { ...race, atEnd: { never: () => false } }
    const error = await lost(failing)
    expect(error.order).toEqual(order)
    await expect(replayRace({ ...failing, order })).rejects.toMatchObject({ timeline: error.timeline })
  })

  it('and leaves Error.stackTraceLimit as it was', async () => {
    const before = Error.stackTraceLimit
    await timersOf({ actors: { a: [({ clock }) => void clock.setTimeout(() => undefined, 10)] } })
    expect(Error.stackTraceLimit).toBe(before)
  })
})

describe('the message of a hang', () => {
  const always = 'Set timers on race.clock, and pass promises from outside the race to race.schedule.'
  const hintOf = async (wait: () => Promise<unknown>): Promise<string> => {
    const { run } = await lost({ actors: { a: [{ label: 'waits', run: wait }] } })
    expect(run.failure?.kind).toBe('hang')
    return (
      run.failure?.message.replace(
        "never settled: step 'waits' of a. No actor, promise or timer can take a turn. ",
        '',
      ) ?? ''
    )
  }
  const started = (what: string): string => `The run has started ${what}, for which a race does not wait. ${always}`

  it('names race.clock alone when nothing else was used', async () => {
    const running = setTimeout(() => undefined, 60_000)
    onTestFinished(() => clearTimeout(running))
    expect(await hintOf(() => new Promise(() => undefined))).toBe(always)
  })

  it('names a real timer', async () => {
    const hint = await hintOf(
      () =>
        new Promise((resolve) => {
          const timer = setTimeout(resolve, 60_000)
          onTestFinished(() => clearTimeout(timer))
        }),
    )
    expect(hint).toBe(started('a real timer'))
  })

  it('names fs', async () => {
    const reads: Promise<unknown>[] = []
    const read = (): Promise<unknown> => {
      reads.push(readFile(new URL(import.meta.url)))
      return Promise.all(reads)
    }
    expect(await hintOf(read)).toBe(started('a file operation (fs)'))
    await Promise.all(reads)
  })

  it('names fetch, and puts it back', async () => {
    const before = globalThis.fetch
    const server = createServer((_, response) => void response.end()).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const requests: Promise<unknown>[] = []
    const ask = (): Promise<unknown> => {
      requests.push(
        fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } }).then((answer) => answer.text()),
      )
      return Promise.all(requests)
    }
    expect(await hintOf(ask)).toBe(started('fetch'))
    expect(globalThis.fetch).toBe(before)
    await Promise.all(requests)
  })

  it('names a connection', async () => {
    const dial = (): Promise<unknown> =>
      new Promise((resolve) => {
        const socket = connect(1, '127.0.0.1', () => resolve(undefined)).on('error', () => undefined)
        onTestFinished(() => void socket.destroy())
      })
    expect(await hintOf(dial)).toBe(started('a connection'))
  })

  it('says the same of a setup', async () => {
    const { run } = await lost({ setup: () => new Promise<never>(() => undefined) })
    expect(run.failure?.message).toBe(
      `setup never settled. No promise or timer is left that could settle it. ${always}`,
    )
  })
})
