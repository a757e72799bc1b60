/** The suite that every kind of instance must pass. The test file of each kind passes a function that opens an instance of that kind. */
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { InstanceError, ToolCallError } from '../../src/errors.js'
import type { TaskProgress } from '../../machines/records.js'
import type { Instance, ToolCall } from '../../src/command-tasks/instances/instance.js'
import type { ManualClock } from '../../src/testing/manual-clock.js'
import type { SuiteTools } from './suite-tools.js'

export interface SuiteSubject {
  readonly instance: Instance
  readonly tools: SuiteTools
  /** The instance's clock. */
  readonly clock: ManualClock
  /** Ends the connection as the server of the instance would. Ends an instance that has no connection. */
  lose(): unknown
  /** Whether `lose` is reported to `onLost`. */
  readonly reportsLoss: boolean
  /** Disposes what owns the instance. Default: closes the instance. */
  dispose?(): Promise<unknown>
}

/** Advances the clock until a promise has settled. */
async function settling<T>(promise: Promise<T>, clock: ManualClock): Promise<T> {
  const state = { isSettled: false }
  const settled = promise.finally(() => (state.isSettled = true))
  settled.catch(() => undefined)
  while (!state.isSettled) {
    await setImmediate()
    clock.advance(1000)
  }
  return settled
}

/** Makes a call with its own abort signal. */
export function callOf(
  name: string,
  args: Record<string, unknown> = {},
): ToolCall & { abort(): void; progress: TaskProgress[] } {
  const controller = new AbortController()
  const progress: TaskProgress[] = []
  return {
    name,
    arguments: args,
    signal: controller.signal,
    onProgress: (item) => progress.push(item),
    abort: () => controller.abort(new DOMException('given up', 'AbortError')),
    progress,
  }
}

export function instanceSuite(kind: string, open: () => Promise<SuiteSubject>): void {
  describe(`${kind}: what every instance does`, () => {
    let subject: SuiteSubject
    let instance: Instance
    const losses: string[] = []
    const failure = async (call: ToolCall): Promise<unknown> =>
      instance.callTool(call).then(
        (result) => expect.fail(`expected a failure, got ${JSON.stringify(result)}`),
        (error: unknown) => error,
      )

    beforeEach(async () => {
      losses.length = 0
      subject = await open()
      instance = subject.instance
      instance.onLost((reason) => losses.push(reason))
    })
    afterEach(async () => {
      await (subject.dispose?.() ?? instance.close())
    })

    it('lists its tools', async () => {
      const names = (await instance.listTools()).map(({ name }) => name)
      expect(names).toEqual([...subject.tools.names])
    })

    it('calls a tool and returns its result', async () => {
      const result = await instance.callTool(callOf('echo', { message: 'hello' }))
      expect(result.content).toEqual([{ type: 'text', text: 'Echo: hello' }])
      expect(result.isError).not.toBe(true)
    })

    it('returns an error result as a result', async () => {
      const result = await instance.callTool(callOf('fail'))
      expect(result.isError).toBe(true)
      expect(result.content).toMatchObject([{ type: 'text', text: 'There is no such element.' }])
    })

    it("rejects a JSON-RPC error with the tool's own code and message", async () => {
      const error = await failure(callOf('explode'))
      expect(error).toBeInstanceOf(ToolCallError)
      expect(error).toMatchObject({
        code: '-32042',
        number: -32042,
        message: expect.stringContaining('Out of order.') as string,
      })
    })

    it('emits progress in order, before the result', async () => {
      const call = callOf('count')
      await instance.callTool(call)
      expect(call.progress).toEqual([1, 2, 3].map((progress) => ({ progress, total: 3, message: `step ${progress}` })))
    })

    it('S5: an abort reaches the tool, and the call ends', async () => {
      const call = callOf('hold', { name: 'a' })
      const ended = failure(call)
      await subject.tools.held('a')
      call.abort()
      await subject.tools.stopped('a')
      expect(await settling(ended, subject.clock)).toBeInstanceOf(Error)
      // The instance still works.
      expect((await instance.callTool(callOf('echo', { message: 'x' }))).content).toHaveLength(1)
      expect(losses).toEqual([])
    })

    it('does not start a call that was aborted before', async () => {
      const call = callOf('hold', { name: 'b' })
      call.abort()
      expect(await failure(call)).toMatchObject({ name: 'AbortError' })
      const held = await Promise.race([
        subject.tools.held('b').then(() => true),
        instance.callTool(callOf('echo')).then(() => false),
      ])
      expect(held).toBe(false)
    })

    it('fails the calls in flight when it is lost, and later calls', async () => {
      const first = failure(callOf('hold', { name: 'a' }))
      const second = failure(callOf('hold', { name: 'b' }))
      await Promise.all([subject.tools.held('a'), subject.tools.held('b')])
      void subject.lose()
      for (const error of [await first, await second, await failure(callOf('echo'))]) {
        expect(error).toBeInstanceOf(InstanceError)
        expect(error).toMatchObject({ code: 'INSTANCE_DISCONNECTED', instanceId: instance.id })
      }
      expect(losses).toHaveLength(subject.reportsLoss ? 1 : 0)
    })

    it('rejects a call of an unknown tool with its name', async () => {
      const error = await failure(callOf('nonesuch'))
      expect(error).toMatchObject({
        // An MCP server answers with the code of its protocol.
        code: expect.stringMatching(/^(UNKNOWN_TOOL|-32602)$/) as string,
        message: expect.stringContaining('nonesuch') as string,
      })
    })

    it('separates concurrent calls', async () => {
      const calls = ['a', 'b', 'c'].map((name) => instance.callTool(callOf('hold', { name })))
      await Promise.all(['a', 'b', 'c'].map((name) => subject.tools.held(name)))
      const order: number[] = []
      calls.forEach((call, n) => void call.then(() => order.push(n)))
      subject.tools.release('c')
      await calls[2]
      const echoed = await instance.callTool(callOf('echo', { message: 'meanwhile' }))
      expect(echoed.content).toMatchObject([{ text: 'Echo: meanwhile' }])
      subject.tools.release('a')
      await calls[0]
      expect(order).toEqual([2, 0])
      subject.tools.release('b')
      await calls[1]
    })

    it('can be closed twice, and a close is not a loss', async () => {
      const ended = failure(callOf('hold', { name: 'a' }))
      await subject.tools.held('a')
      const closed = Promise.all([instance.close(), instance.close()])
      await subject.tools.stopped('a')
      await settling(closed, subject.clock)
      expect(await ended).toBeInstanceOf(InstanceError)
      expect(losses).toEqual([])
    })

    it('leaves no timer behind', async () => {
      await instance.callTool(callOf('count'))
      await (subject.dispose?.() ?? instance.close())
      expect(subject.clock.pending).toBe(0)
    })
  })
}
