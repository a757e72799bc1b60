/** In a browser: the adapter and the receiver of `@statelyai/inspect`, between two fake windows. */
import { createBrowserReceiver, type StatelyInspectionEvent } from '@statelyai/inspect'
import { afterEach, expect, it, onTestFinished, vi } from 'vitest'
import { AsyncTaskManager } from '../../../../src/async-tasks/manager.js'
import { systemClock } from '../../../../src/system/clock.js'
import { createInspector } from '../../../../src/observability/inspect/index.js'
import { createViewerTransport } from '../../../../src/observability/inspect/viewer-window.js'
import { waitFor } from '../../../support/wait-for.js'

type Listener = (event: { data: unknown }) => void

afterEach(() => {
  vi.unstubAllGlobals()
})

/** A window that others can post to. */
function createWindow() {
  const listeners = new Set<Listener>()
  const self = {
    opener: undefined as unknown,
    addEventListener: (_type: string, listener: Listener) => void listeners.add(listener),
    // Like the platform: asynchronous, with a structured clone.
    postMessage: (data: unknown) => {
      const copy = structuredClone(data)
      queueMicrotask(() => {
        for (const listener of listeners) listener({ data: copy })
      })
    },
  }
  return { ...self, self, top: self }
}

it('opens the viewer in a window, and sends the tree when it has loaded', async () => {
  const page = createWindow()
  const viewer = createWindow()
  const opened = vi.fn(() => viewer)
  vi.stubGlobal('window', { ...page, open: opened })
  let wake = (): void => {}
  const inspector = createInspector({
    url: 'https://viewer.example/inspect',
    clock: systemClock,
    onError: (error) => expect.unreachable(String(error)),
  })
  onTestFinished(() => inspector.close())
  const manager = new AsyncTaskManager({ inspect: inspector })
  manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'SECRET', abortController: new AbortController() })
  await waitFor(() => expect(inspector.stats.sent).toBeGreaterThan(0))
  expect(opened).toHaveBeenCalledExactlyOnceWith('https://viewer.example/inspect', 'xstateinspector')

  // The viewer is loaded later, and posts that it is connected.
  const seen: StatelyInspectionEvent[] = []
  createBrowserReceiver({ window: { ...viewer, self: viewer, top: viewer, opener: page } as never }).subscribe(
    (message) => {
      seen.push(message)
      wake()
    },
  )
  manager.cancelTask('a')
  await new Promise<void>((resolve) => {
    wake = () => {
      if (seen.some((message) => message.type === '@xstate.event' && message.event.type === 'task.cancel')) resolve()
    }
    wake()
  })
  const actors = seen.flatMap((message) => (message.type === '@xstate.actor' ? [message.name] : []))
  expect(actors).toEqual(['registry', 'task.a'])
  expect(JSON.stringify(seen)).not.toContain('SECRET')
  await inspector.close()
  expect(inspector.stats).toMatchObject({ isConnected: false, buffered: 0, dropped: 0 })
  await manager.dispose()
})

it('sends nothing more when it is closed, and says so', async () => {
  const viewer = createWindow()
  const page = createWindow()
  vi.stubGlobal('window', { ...page, open: () => viewer })
  const [onOpen, onDown] = [vi.fn(), vi.fn()]
  const transport = createViewerTransport({ url: 'https://viewer.example/', onOpen, onDown })
  await waitFor(() => expect(onOpen).toHaveBeenCalledOnce())
  const posted = vi.fn<Listener>()
  viewer.addEventListener('message', posted)
  const message = JSON.stringify({ type: '@xstate.actor', sessionId: 'x:0', rootId: 'x:0' })
  page.postMessage({ type: '@statelyai.connected' })
  await new Promise((resolve) => setImmediate(resolve))
  transport.send(message)
  await new Promise((resolve) => setImmediate(resolve))
  expect([posted.mock.calls.length, transport.state, transport.canTake]).toEqual([1, 'open', true])
  await transport.close()
  expect(transport.canTake).toBe(false)
  await new Promise((resolve) => setImmediate(resolve))
  // The viewer is told that the page has gone.
  const before = posted.mock.calls.length
  expect(before).toBe(2)
  transport.send(message)
  await new Promise((resolve) => setImmediate(resolve))
  expect([posted.mock.calls.length, onDown.mock.calls]).toEqual([before, []])
})

it('does not open the viewer when it is closed before', async () => {
  const open = vi.fn()
  vi.stubGlobal('window', { ...createWindow(), open })
  const onOpen = vi.fn()
  const onDown = vi.fn()
  const transport = createViewerTransport({ url: 'https://viewer.example/', onOpen, onDown })
  expect(transport.state).toBe('opening')
  await transport.close()
  await import('@statelyai/inspect')
  await new Promise((resolve) => setImmediate(resolve))
  expect([open.mock.calls, onOpen.mock.calls, onDown.mock.calls]).toEqual([[], [], []])
})

it.each([
  ['that cannot be opened', 'blocked', () => raise(new Error('blocked'))],
  ['whose window the browser blocks', 'the browser blocked it: open it from a click, or allow pop-ups', () => null],
])('reports a viewer %s, and the work goes on', async (_, why, open) => {
  vi.stubGlobal('window', { ...createWindow(), open })
  const onError = vi.fn<(error: unknown, source: string) => void>()
  const inspector = createInspector({ url: 'https://viewer.example/', onError })
  const manager = new AsyncTaskManager({ inspect: inspector })
  manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
  await waitFor(() => expect(onError).toHaveBeenCalledOnce())
  const [error, source] = onError.mock.calls[0] ?? []
  expect(source).toBe('connection')
  expect((error as Error).message).toContain(
    `The viewer at https://viewer.example/ could not be opened in a window (${why}`,
  )
  expect(manager.cancelTask('a')).toBe(true)
  await manager.dispose()
  await inspector.close({ timeoutMs: 1e9 })
  expect(inspector.stats).toMatchObject({ isConnected: false, sent: 0, buffered: 0 })
})

it('reports that @statelyai/inspect is missing, and tasks go on', async () => {
  vi.stubGlobal('window', createWindow())
  vi.doMock('@statelyai/inspect', () => raise(new Error('no such package')))
  onTestFinished(() => vi.doUnmock('@statelyai/inspect'))
  const onError = vi.fn<(error: unknown) => void>()
  const inspector = createInspector({ url: 'https://viewer.example/', onError })
  await waitFor(() => expect(onError).toHaveBeenCalledOnce())
  const [error] = onError.mock.calls[0] ?? []
  expect((error as Error).message).toContain('The viewer needs @statelyai/inspect, which could not be loaded (')
  await inspector.close()
})

function raise(error: Error): never {
  throw error
}
