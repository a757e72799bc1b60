/** `laneContract`: test cases for anything that runs the tasks of instances, in one process or on many nodes. */
import { systemClock } from '../system/clock.js'
import { casesOf, END_MS, expectEqual, type ContractCase } from './contract-cases.js'

/** A call that an instance received. */
export interface LaneCall {
  /** The name that was passed to `submit`. */
  readonly name: string
  /** Aborts when the call is no longer needed. */
  readonly signal: AbortSignal
  /** Answers the call. */
  readonly end: () => void
}

/** A connected instance. */
export interface LaneInstance {
  /** Cuts the connection of the instance. The instance reconnects by itself, possibly to another node. */
  readonly cut: () => void
}

/** What a case of `laneContract` tests. */
export interface LaneSubject {
  /** Whether waiting tasks stay queued when their instance is lost. Otherwise they fail. */
  readonly keepsWaiting: boolean
  /** Connects an instance. Each of its calls is passed to `onCall`, which decides when the call ends. */
  readonly connect: (instanceId: string, onCall: (call: LaneCall) => void) => Promise<LaneInstance>
  /** Submits a task with one call. Resolves with the id of the task, or with undefined if the task is refused. */
  readonly submit: (instanceId: string, name: string) => Promise<string | undefined>
  /** Cancels a task. Resolves with false if the task had already ended. */
  readonly cancel: (taskId: string) => Promise<boolean>
  /** Resolves with the end of the task when the task has ended. */
  readonly ended: (taskId: string) => Promise<LaneEnd>
  /** Stops and restarts the service that holds the tasks. Undefined if there is none. */
  readonly restart?: (() => Promise<void>) | undefined
  /** Disposes the subject. Called after the case. */
  readonly dispose: () => Promise<void>
}

/** The end of a task. */
export interface LaneEnd {
  /** `completed`, `failed` or `cancelled`. */
  readonly status: string
  /** The code of its failure or cancellation. */
  readonly code?: string | undefined
}

/**
 * Test cases for the tasks of instances. An instance must run its tasks one at a time, in order, and each task once. `for (const { name, run } of
 * laneContract(makeSubject)) test(name, run)`.
 * @param makeSubject creates the subject of each case
 * @returns the cases, which work with any test runner
 */
export function laneContract(makeSubject: () => LaneSubject | Promise<LaneSubject>): readonly ContractCase[] {
  return casesOf(CASES, makeSubject)
}

/** The calls of an instance, in order. */
class Calls {
  readonly all: LaneCall[] = []
  readonly #listeners = new Set<() => void>()

  readonly add = (call: LaneCall): void => {
    this.all.push(call)
    for (const listener of [...this.#listeners]) listener()
  }

  get names(): string[] {
    return this.all.map(({ name }) => name)
  }

  /** Resolves with the first call of this name, which may have arrived earlier. */
  of(name: string): Promise<LaneCall> {
    return new Promise((resolve) => {
      const look = (): void => {
        const call = this.all.find((one) => one.name === name)
        if (call === undefined) return
        this.#listeners.delete(look)
        resolve(call)
      }
      this.#listeners.add(look)
      look()
    })
  }

  /** Ends each call of these names when it arrives. */
  async end(...names: readonly string[]): Promise<void> {
    for (const name of names) (await this.of(name)).end()
  }
}

const CASES: Readonly<Record<string, (subject: LaneSubject) => Promise<void>>> = {
  'runs the tasks of an instance one at a time, in the order in which they were accepted': async (subject) => {
    const calls = new Calls()
    await subject.connect('w', calls.add)
    const names = ['a', 'b', 'c', 'd']
    const ids = await submitAll(subject, 'w', names)
    for (const [at, name] of names.entries()) {
      const { end } = await calls.of(name)
      expectEqual(calls.names, names.slice(0, at + 1), 'the calls before the end of the last call')
      end()
    }
    for (const id of ids) expectEqual((await subject.ended(id)).status, 'completed', 'the end')
    expectEqual(calls.names, names, 'the calls')
  },

  'runs the tasks of different instances at the same time': async (subject) => {
    const [one, other] = [new Calls(), new Calls()]
    await subject.connect('v', one.add)
    await subject.connect('w', other.add)
    const [held = ''] = await submitAll(subject, 'v', ['held'])
    const [quick = ''] = await submitAll(subject, 'w', ['quick'])
    await one.of('held')
    await other.end('quick')
    expectEqual((await subject.ended(quick)).status, 'completed', 'the end of the task of the other instance')
    await one.end('held')
    expectEqual((await subject.ended(held)).status, 'completed', 'the end of the task that was held')
  },

  'ends a task once, and ignores what comes after its end': async (subject) => {
    const calls = new Calls()
    await subject.connect('w', calls.add)
    const [id = ''] = await submitAll(subject, 'w', ['a'])
    await calls.end('a')
    const end = await subject.ended(id)
    expectEqual(await subject.cancel(id), false, 'whether a later cancellation has cancelled the task')
    expectEqual(await subject.ended(id), end, 'the end')
  },

  'never starts a task that is cancelled while it waits': async (subject) => {
    const calls = new Calls()
    await subject.connect('w', calls.add)
    const [, waiting = '', last = ''] = await submitAll(subject, 'w', ['first', 'waiting', 'last'])
    await calls.of('first')
    expectEqual(await subject.cancel(waiting), true, 'whether it was cancelled')
    await calls.end('first', 'last')
    expectEqual((await subject.ended(last)).status, 'completed', 'the end of the last task')
    expectEqual((await subject.ended(waiting)).status, 'cancelled', 'the end of the task that waited')
    expectEqual(calls.names, ['first', 'last'], 'the calls')
  },

  'aborts the call of a cancelled task, ignores its late answer, and runs the next task': async (subject) => {
    const calls = new Calls()
    await subject.connect('w', calls.add)
    const [first = '', next = ''] = await submitAll(subject, 'w', ['first', 'next'])
    const { signal, end } = await calls.of('first')
    expectEqual(await subject.cancel(first), true, 'whether it was cancelled')
    await aborted(signal)
    end()
    await calls.end('next')
    expectEqual((await subject.ended(next)).status, 'completed', 'the end of the next task')
    expectEqual((await subject.ended(first)).status, 'cancelled', 'the end of the first task')
  },

  'fails the running task when its instance is lost, ignores its late answer, and keeps the order of the others':
    async (subject) => {
      const calls = new Calls()
      const { cut } = await subject.connect('w', calls.add)
      const waiting = ['a', 'b', 'c']
      const [lost = '', ...ids] = await submitAll(subject, 'w', ['lost', ...waiting])
      const { end } = await calls.of('lost')
      cut()
      expectEqual(await subject.ended(lost), LOST, 'the end of the lost task')
      end()
      if (subject.keepsWaiting) await calls.end(...waiting)
      const ends = await Promise.all(ids.map((id) => subject.ended(id)))
      const expected = subject.keepsWaiting ? { status: 'completed', code: undefined } : LOST
      expectEqual(
        ends,
        waiting.map(() => expected),
        'the ends of the waiting tasks',
      )
      const [last = ''] = await submitAll(subject, 'w', ['last'])
      await calls.end('last')
      expectEqual((await subject.ended(last)).status, 'completed', 'the end of the last task')
      expectEqual(calls.names, ['lost', ...(subject.keepsWaiting ? waiting : []), 'last'], 'the calls')
      expectEqual(await subject.ended(lost), LOST, 'the end of the lost task, later')
    },

  'continues in order after a restart of the service that holds the tasks': async (subject) => {
    if (subject.restart === undefined) return
    const calls = new Calls()
    await subject.connect('w', calls.add)
    const names = ['a', 'b', 'c']
    const ids = await submitAll(subject, 'w', names)
    await calls.of('a')
    await subject.restart()
    await calls.end(...names)
    for (const id of ids) expectEqual((await subject.ended(id)).status, 'completed', 'the end')
    expectEqual(calls.names, names, 'the calls')
  },
}

const LOST: LaneEnd = { status: 'failed', code: 'INSTANCE_DISCONNECTED' }

/** The wait before a refused task is submitted again, in ms. Its instance may be reconnecting. */
const AGAIN_MS = 20

/** Submits tasks one after another. A refused task is submitted again until it is accepted. */
async function submitAll({ submit }: LaneSubject, instanceId: string, names: readonly string[]): Promise<string[]> {
  const ids: string[] = []
  for (const name of names) {
    let id = await submit(instanceId, name)
    for (let waited = 0; id === undefined; waited += AGAIN_MS) {
      if (waited >= END_MS) throw new Error(`the task ${name} was not accepted within ${END_MS} ms`)
      await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, AGAIN_MS))
      id = await submit(instanceId, name)
    }
    ids.push(id)
  }
  return ids
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
