/** What the setup of every test finds left behind, and what it does not count. */
import { Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { BusyWatch } from '../../../src/features/delivery/busy.js'
import { systemClock } from '../../../src/system/clock.js'
import { awaitAuthentication } from '../../../src/server/authentication.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { leftovers } from '../../support/leftovers.js'

/** What is left, as kind and file. */
const left = (): string[] => leftovers().map(({ kind, madeBy }) => `${kind}: ${madeBy[0]?.replace(/:.*/, '') ?? ''}`)

describe('what src has left behind is found, until it is removed', () => {
  it.each([
    ['a manual clock', createManualClock()],
    ['the system clock', systemClock],
  ])('a timer of %s', (_, clock) => {
    const socket = Reflect.construct(WebSocket, [null, undefined, {}]) as WebSocket
    awaitAuthentication(socket, {
      clock,
      timeoutMs: 60_000,
      isToken: () => true,
      onRefused: () => undefined,
      onAuthenticated: () => undefined,
    })
    expect(left()).toEqual(['timer: src/server/authentication.ts'])
    socket.emit('close')
    expect(left()).toEqual([])
  })

  it('an abort listener', () => {
    const manager = new AsyncTaskManager({ clock: createManualClock() })
    const { signal } = new AbortController()
    const abortController = { signal, abort: () => undefined } as unknown as AbortController
    manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'help', abortController })
    expect(left()).toEqual(['abort listener: src/features/families/abort-link.ts'])
    manager.completeTask('a', {})
    expect(left()).toEqual([])
  })

  it('an open subscription', () => {
    const busy = new BusyWatch(
      () => false,
      () => undefined,
      'main',
      createManualClock(),
    )
    const subscription = busy.idle$.subscribe()
    busy.source = new Subject<boolean>()
    expect(new Set(left())).toEqual(new Set(['subscription: src/features/delivery/busy.ts']))
    subscription.unsubscribe()
    expect(left()).toEqual([])
  })
})

it('what a test has made itself does not count', () => {
  createManualClock().setTimeout(() => undefined, 1000)
  new AbortController().signal.addEventListener('abort', () => undefined)
  new Subject().subscribe()
  expect(left()).toEqual([])
})
