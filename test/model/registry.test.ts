/** The registry against its model. Counterexamples that were found are named tests. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { createManualClock } from '../../src/testing/manual-clock.js'
import { runMicrotasks } from '../../src/testing/microtasks.js'
import { checkProperty } from '../support/property.js'
import { createSubject } from '../support/subject.js'
import { LONG_OUTPUT, RATE_LIMITED, type LaunchFields, type RegistrySettings, type TopAction } from './actions.js'
import {
  compare,
  ledgerProperty,
  namesakeProperty,
  registryProperty,
  talkingProperty,
  waitingProperty,
} from './registry.property.js'

describe('the registry, against its model', () => {
  it('answers, emits and shows what the model does after every action (A1, A2, A3, A4, A7, A8, A9)', async () => {
    await checkProperty('registry', registryProperty(createSubject()))
  })

  it('separates tasks that have the same id one after another, whatever their runs do (A1, A4)', async () => {
    await checkProperty('namesake', namesakeProperty(createSubject()))
  })

  it('owes each result to one owner until a message that carried it was accepted (A5, A6, A7)', async () => {
    await checkProperty('ledger', ledgerProperty(createSubject()))
  })

  it('F6, F7, F8, F9, F10: queues, repeats, stops, asks and notifies as the model does after every action', async () => {
    await checkProperty('waiting', waitingProperty(createSubject()))
  })

  it('F6, F7: delivers and answers each question once, and each message, whatever else is asked', async () => {
    await checkProperty('talking', talkingProperty(createSubject()))
  })
})

const register = (id: string, owner?: string, controller?: string): TopAction => ({
  do: 'register',
  fields: { id, ...(owner !== undefined && { owner }), ...(controller !== undefined && { controller }) },
})
const complete = (id: string, value = 0): TopAction => ({ do: 'complete', task: { id }, value })

const launch = (fields: LaunchFields): TopAction => ({ do: 'launch', fields })
const queue = (id: string): TopAction => launch({ id, whenFull: 'queue' })

/** Compares the real manager with the model over these actions. */
const behaves = (actions: readonly TopAction[], settings: Partial<RegistrySettings> = {}): Promise<void> =>
  compare(createSubject(), { maxAsyncTasks: 1, notifyCancelled: false, graceMs: 5, ...settings }, actions)

describe('sequences that once failed, or that missed a planted fault', () => {
  it('A2: a subscriber of owed$ that changes the counts when it gets the first ones gets the change as well', () =>
    behaves([
      register('a'),
      { do: 'subscribe', stream: 'owed', script: [{ do: 'complete', task: { id: 'a' }, value: 0 }] },
    ]))

  it('A2: a stream that a subscriber subscribes to when it gets the first counts completes after its own', () =>
    behaves([
      {
        do: 'subscribe',
        stream: 'owed',
        script: [{ do: 'subscribe', stream: 'transitions', script: [] }],
      },
      { do: 'dispose' },
    ]))

  it('A9: an abort listener that was added before the registration can be removed after it', () =>
    behaves([
      { do: 'listen', controller: 'c1', script: [] },
      register('a', 'main', 'c1'),
      { do: 'unsubscribe', subscription: 0 },
      { do: 'cancel', task: { id: 'a' } },
    ]))

  it('lists the running tasks of an owner in the order of registration, those it inherited as well', () =>
    behaves([register('a', 'sub'), register('b'), { do: 'releaseOwner', owner: 'sub', to: 'main' }]))

  it('A3: an expired reservation is not counted, in an unlimited registry either', () =>
    behaves(
      [
        { do: 'reserve', ttlMs: 5 },
        { do: 'advance', ms: 5 },
      ],
      { maxAsyncTasks: -1 },
    ))

  it('A5: a result that is returned after its owner was released is not owed, not even to a wait', () =>
    behaves([
      register('a'),
      complete('a'),
      { do: 'lease' },
      register('b'),
      { do: 'wait', tasks: [{ id: 'a' }, { id: 'b' }], mode: 'all' },
      { do: 'releaseOwner', owner: 'main' },
      { do: 'release', lease: 0 },
      complete('b'),
    ]))

  it('A6: an exclusive lease whose results were all delivered otherwise is still the only one of its owner', () =>
    behaves([
      register('a'),
      complete('a'),
      { do: 'lease', owner: 'main', isExclusive: true },
      { do: 'notify', task: { id: 'a' } },
      register('b'),
      complete('b'),
      { do: 'lease', owner: 'main', isExclusive: true },
      { do: 'release', lease: 0 },
      { do: 'lease', owner: 'main', isExclusive: true },
    ]))

  it('A7: a record is kept until it is read when it was delivered while the message that cut it was leased', () =>
    behaves(
      [
        {
          do: 'subscribe',
          stream: 'transitions',
          script: [{ do: 'markAllNotified' }, { do: 'notify', task: { id: 'a' } }],
        },
        { do: 'unsubscribe', subscription: 0 },
        register('a'),
        complete('a', LONG_OUTPUT),
        { do: 'subscribe', stream: 'transitions', script: [{ do: 'notify', task: { id: 'a' } }] },
        { do: 'leaseReminder' },
        register('b'),
        { do: 'cancel', task: { id: 'b' } },
        register('c'),
        { do: 'cancel', task: { id: 'c' } },
        { do: 'setMax', max: 0 },
        { do: 'read', task: { id: 'a' } },
      ],
      { maxAsyncTasks: 1 },
    ))

  it('A5: a wait that is aborted while its lease is taken returns what it has leased', () =>
    behaves([
      register('a'),
      complete('a'),
      register('b'),
      { do: 'subscribe', stream: 'owed', script: [{ do: 'abortWait', wait: 0 }] },
      { do: 'wait', tasks: [{ id: 'a' }, { id: 'b' }], mode: 'all' },
    ]))

  it('A2: a subscriber that takes what a released delivery returned changes the counts with that change', () =>
    behaves([
      register('a'),
      complete('a'),
      { do: 'lease', owner: 'main', isExclusive: true },
      { do: 'subscribe', stream: 'transitions', script: [{ do: 'lease' }] },
      { do: 'release', lease: 0 },
    ]))

  it('A5: a wait ends at the first change that it is told of after all its tasks have ended', () =>
    behaves([
      register('a'),
      { do: 'on', status: 'completed', script: [{ do: 'cancelAll', owner: 'main' }] },
      complete('a'),
      register('b', 'sub'),
      queue('c'),
      queue('d'),
      { do: 'wait', tasks: [{ id: 'a' }, { id: 'c' }], mode: 'all' },
      { do: 'wait', tasks: [{ id: 'b' }, { id: 'd' }], mode: 'all' },
      complete('b'),
    ]))

  it('F8: a time limit of 0 ms counts from the start, also of a task that waited for an expired reservation', () =>
    behaves(
      [
        { do: 'reserve', ttlMs: 5 },
        launch({ controller: 'c1', timeoutMs: 0, whenFull: 'queue' }),
        { do: 'advance', ms: 10 },
      ],
      { graceMs: 0 },
    ))

  it('F8, F9: the end of a reservation that an observer has made is waited for', () =>
    behaves([
      { do: 'subscribe', stream: 'actor', script: [{ do: 'reserve', ttlMs: 100 }] },
      {
        do: 'launch',
        fields: { retry: { attempts: 2, on: ['start-failed'], backoff: { initialMs: 5, factor: 1, jitter: false } } },
        isRefused: true,
      },
      { do: 'advance', ms: 200 },
    ]))

  it('F8: what waits does not start when everything is cancelled', () =>
    behaves([register('a'), queue('b'), { do: 'cancelAll', owner: 'main' }]))

  it('F8, A9: what waits does not start when the manager is disposed', () =>
    behaves([register('a'), queue('b'), { do: 'dispose' }]))

  it('F8: a task that waits reports no progress, and writes nothing', () =>
    behaves([
      register('a'),
      queue('b'),
      { do: 'subscribe', stream: 'progress', script: [] },
      { do: 'progress', task: { id: 'b' }, value: 1 },
      { do: 'append', task: { id: 'b' }, text: 'x' },
      { do: 'readOutput', task: { id: 'b' } },
    ]))

  it('F8: a slot that becomes free at the end of the longest wait is taken', () =>
    behaves([{ do: 'reserve', ttlMs: 5 }, queue('a'), { do: 'advance', ms: 5 }, { do: 'advance', ms: 5 }], {
      queue: { maxWaitMs: 5 },
    }))

  it('F8: a foreground task leaves the slot of its reservation to what waits', () =>
    behaves([{ do: 'reserve' }, queue('a'), { do: 'launch', fields: {}, reservation: 0, isForeground: true }]))

  it('F6, F9: the questions of a run that is repeated are owed to nobody', () =>
    behaves([
      launch({
        id: 'a',
        retry: { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 5, factor: 1, jitter: false } },
      }),
      { do: 'begin', run: 0 },
      { do: 'ask', run: 0 },
      { do: 'reject', run: 0, reason: RATE_LIMITED },
      { do: 'leaseReminder' },
    ]))

  it('A7, F15: the result of a task that was to run after others is cut where their errors make it long', () =>
    behaves(
      [
        launch({ id: 'a' }),
        ...['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((id, index, ids) =>
          launch({ id: ids[index + 1] ?? 'z', after: [{ id }] }),
        ),
        { do: 'cancel', task: { id: 'a' } },
        { do: 'remind' },
        { do: 'leaseReminder' },
        { do: 'read', task: { id: 'z' } },
      ],
      { maxAsyncTasks: 20 },
    ))

  it('A1: a call whose output ends the task while it is read ends nothing itself', () => {
    const manager = new AsyncTaskManager({ clock: createManualClock() })
    manager.registerTask({ id: 'a', subagentName: 'agent', goalPrompt: '' })
    const answers: boolean[] = []
    const get = (): boolean => {
      answers.push(manager.completeTask('a', { final_message: 'inner' }))
      return true
    }
    answers.push(manager.completeTask('a', Object.defineProperty({}, 'x', { enumerable: true, get })))
    expect(answers).toEqual([true, false])
    expect(manager.getTask('a')).toMatchObject({ status: 'completed', output: { final_message: 'inner' } })
  })

  it('A2: a run that throws an error which cannot be read fails its task and frees its slot', async () => {
    const manager = new AsyncTaskManager({ clock: createManualClock(), maxAsyncTasks: 1 })
    const get = (): never => {
      throw new Error('do not look')
    }
    const reason = Object.defineProperties(new Error(), { message: { get }, name: { get } })
    manager.launch({ id: 'a', subagentName: 'agent', goalPrompt: '' }, () => Promise.reject(reason))
    await manager.waitFor(['a'])
    expect(manager.getTask('a')?.error).toBe('The run failed with an object that cannot be shown.')
    expect(manager.canLaunchAsync()).toEqual({ allowed: true })
  })

  it('returns the tasks of a wait as they were when it ended, whatever the handlers did then', async () => {
    const manager = new AsyncTaskManager({ clock: createManualClock() })
    const input = { subagentName: 'agent', goalPrompt: '' }
    manager.registerTask({ ...input, id: 'a' })
    manager.registerTask({ ...input, id: 'b' })
    const wait = manager.waitFor(['a', 'b'], { mode: 'any' })
    manager.completeTask('a', {})
    manager.transitions$.subscribe(({ to }) => to === 'delivered' && manager.cancelTask('b'))
    const { settled, pending } = await wait
    expect(settled.map(({ id, delivery }) => [id, delivery])).toEqual([['a', 'delivered']])
    expect(pending.map(({ id, status }) => [id, status])).toEqual([['b', 'running']])
    expect(manager.getTask('b')?.status).toBe('cancelled')
  })

  it('A2: an async handler, subscriber or abort listener that rejects is reported, without another effect', async () => {
    const reported: string[] = []
    const onError = (error: unknown, { source }: { source: string }): unknown => {
      if ((error as Error).message === source) reported.push(source)
      return Promise.reject(new Error('onError'))
    }
    const manager = new AsyncTaskManager({ clock: createManualClock(), onError, inspect: reject('inspector') })
    const { abortController } = manager.launch(
      { id: 'a', subagentName: 'agent', goalPrompt: '' },
      () => new Promise(() => undefined),
    )
    manager.onTaskCancelled(reject('handler'))
    manager.settled$.subscribe(reject('stream'))
    manager.actor.subscribe(reject('actor-observer'))
    abortController?.signal.addEventListener('abort', reject('abort-listener'))
    manager.cancelTask('a')
    await runMicrotasks(5)
    expect([...new Set(reported)].sort()).toEqual([
      'abort-listener',
      'actor-observer',
      'handler',
      'inspector',
      'stream',
    ])
    await manager.dispose()
  })
})

const reject =
  (message: string): (() => unknown) =>
  () =>
    Promise.reject(new Error(message))
