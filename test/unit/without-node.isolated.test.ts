/** Where there is no Node, as in a browser: what the core does instead. `test/e2e/inspect-browser.test.ts` runs it in a real one. */
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'

beforeEach(() => {
  vi.resetModules()
  onTestFinished(() => void vi.unstubAllGlobals())
})

describe.each([
  ['no process at all', undefined],
  ["a bundler's part of one", { env: {} }],
])('with %s', (_, stub) => {
  async function importWithoutNode<Module>(load: () => Promise<Module>): Promise<Module> {
    // Loaded with Node, so that the runner finds it; evaluated as if there were none.
    const { process } = globalThis
    vi.doMock('../../src/system/node-builtins.js', async (importOriginal) => {
      vi.stubGlobal('process', stub)
      try {
        return await importOriginal<object>()
      } finally {
        vi.stubGlobal('process', process)
      }
    })
    onTestFinished(() => vi.doUnmock('../../src/system/node-builtins.js'))
    return load()
  }

  it('a runner of programs says that there are none', async () => {
    const { processRunner } = await importWithoutNode(() => import('../../src/runners/process-runner.js'))
    expect(() => processRunner({ command: 'ls', killSignal: 'SIGINT' })).toThrow(
      expect.objectContaining({
        code: 'PROCESS_NOT_STARTED',
        message: 'Command "ls" cannot be started: only Node can start programs, and this is not Node.',
      }),
    )
    expect(() => processRunner({ command: '' })).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })

  it('a fair engine lets the event loop turn between messages', async () => {
    const { createFairEngine } = await importWithoutNode(() => import('../../src/engine/fair-engine.js'))
    let now = 0
    const clock = { now: () => (now += 20), setTimeout: () => undefined, clearTimeout: () => undefined }
    const order: string[] = []
    const runs: Promise<unknown>[] = []
    const engine = createFairEngine(
      {
        start: ({ run }) => {
          runs.push(Promise.resolve(run(new AbortController())))
          return {} as never
        },
      },
      clock,
    )
    const start = (name: string) => engine.start({ run: () => void order.push(name) } as never)
    for (const name of ['a', 'b']) start(name)
    for (let turn = 0; turn < 100; turn += 1) await Promise.resolve()
    expect(order, 'promises alone do not let the event loop turn').toEqual([])
    await Promise.all(runs)
    expect(order).toEqual(['a', 'b'])
  })
})
