/** Instances made of functions. */
import { getEventListeners } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { InstanceError } from '../../../../src/errors.js'
import type { Instance } from '../../../../src/command-tasks/instances/instance.js'
import { localInstance } from '../../../../src/command-tasks/instances/local-instance.js'
import { instanceTool, type InstanceTool, type InstanceToolContext } from '../../../../src/protocol/instance-tools.js'
import { callOf, instanceSuite } from '../../../support/instance-suite.js'
import { createManualClock } from '../../../../src/testing/manual-clock.js'
import { createSuiteTools } from '../../../support/suite-tools.js'
import { defineTool, errorResult } from '../../../../src/tools/tool.js'

instanceSuite('local', async () => {
  const tools = createSuiteTools()
  const clock = createManualClock()
  const instance = localInstance({
    id: 'here',
    clock,
    tools: tools.names.map((name) => ({
      name,
      execute: (input, { signal, progress }) =>
        tools.call(name, input as Record<string, unknown>, { signal, progress }),
    })),
  })
  return { instance, tools, clock, lose: () => instance.close(), reportsLoss: false }
})

const one = (tool: Omit<InstanceTool, 'name'>, onError?: (error: unknown) => void) =>
  localInstance({ id: 'here', tools: [{ name: 'it', ...tool }], ...(onError && { onError }) })
const returning = async (value: unknown) => one({ execute: () => value }).callTool(callOf('it'))

describe('what a function returns', () => {
  it('is text when it is a string', async () => {
    expect(await returning('done')).toEqual({ content: [{ type: 'text', text: 'done' }] })
  })

  it('is structured content, and its JSON, when it is an object', async () => {
    expect(await returning({ sum: 3 })).toEqual({
      content: [{ type: 'text', text: '{"sum":3}' }],
      structuredContent: { sum: 3 },
    })
  })

  it('is JSON when it is a number or a list', async () => {
    expect(await returning(3)).toEqual({ content: [{ type: 'text', text: '3' }] })
    expect(await returning([1, 2])).toEqual({ content: [{ type: 'text', text: '[1,2]' }] })
  })

  it('is empty when it is undefined', async () => {
    expect(await returning(undefined)).toEqual({ content: [] })
  })

  it('is kept when it is an MCP result', async () => {
    const result = { content: [{ type: 'image', data: 'aGk=', mimeType: 'image/png' }], isError: true, _meta: { a: 1 } }
    expect(await returning(result)).toEqual(result)
  })

  it.each([
    ['text', 'done'],
    ['blocks without a type', [{ text: 'done' }]],
  ])('is like any other object when its content is %s', async (_what, content) => {
    expect(await returning({ content })).toEqual({
      content: [{ type: 'text', text: JSON.stringify({ content }) }],
      structuredContent: { content },
    })
  })

  it('is copied', async () => {
    const value = { items: [1] }
    const { structuredContent } = await returning(value)
    value.items.push(2)
    expect(structuredContent).toEqual({ items: [1] })
  })
})

describe('a function that fails', () => {
  it('is an error result with its message, and its code when it has one', async () => {
    const error = Object.assign(new Error('The disk is full.'), { code: 'ENOSPC' })
    const result = await one({ execute: () => Promise.reject(error) }).callTool(callOf('it'))
    expect(result).toEqual({
      content: [{ type: 'text', text: 'The disk is full.' }],
      isError: true,
      _meta: { code: 'ENOSPC' },
    })
  })

  it('is an error result when it throws synchronously', async () => {
    const result = await one({
      execute: () => {
        throw new TypeError('no')
      },
    }).callTool(callOf('it'))
    expect(result).toMatchObject({ isError: true, content: [{ text: 'no' }] })
  })
})

describe('arguments', () => {
  const add = instanceTool({
    name: 'add',
    description: 'Adds.',
    inputSchema: z.object({ a: z.number(), b: z.number().default(1) }),
    execute: ({ a, b }) => a + b,
  })
  const instance = localInstance({ id: 'calc', tools: [add] })

  it('are parsed by the schema', async () => {
    expect(await instance.callTool(callOf('add', { a: 2 }))).toMatchObject({ content: [{ text: '3' }] })
  })

  it('that are invalid are an error result that names the field, and the function is not called', async () => {
    const execute = vi.fn()
    const result = await one({ inputSchema: z.object({ a: z.number() }), execute }).callTool(callOf('it', { a: 'x' }))
    expect(result).toMatchObject({
      isError: true,
      content: [{ text: 'arguments.a: got "x", expected a number.' }],
      _meta: { code: 'INVALID_ARGUMENTS' },
    })
    expect(execute).not.toHaveBeenCalled()
  })

  it('S4: a call that is given up while its arguments are validated does not start', async () => {
    const execute = vi.fn()
    const instance = one({ execute })
    const controller = new AbortController()
    const called = instance.callTool({ ...callOf('it'), signal: controller.signal })
    controller.abort(new Error('given up'))
    await expect(called).rejects.toThrow('given up')
    expect(execute).not.toHaveBeenCalled()
  })

  it('are described as JSON Schema', async () => {
    const [tool] = await instance.listTools()
    expect(tool).toMatchObject({
      name: 'add',
      description: 'Adds.',
      inputSchema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
    })
  })
})

describe('a tool of agent-tasks/tools', () => {
  const inputSchema = z.object({ ok: z.boolean() })
  const tool = defineTool({
    name: 'neutral',
    description: 'Says yes or no.',
    inputSchema,
    run: ({ ok }) =>
      ok ? { llmContent: 'yes', returnDisplay: '**yes**', metadata: { n: 1 } } : errorResult('refused', 'I will not.'),
  })
  const instance = localInstance({ id: 'here', tools: [tool] })

  it('returns to a command what it returns to a model', async () => {
    expect(await instance.callTool(callOf('neutral', { ok: true }))).toEqual({
      content: [{ type: 'text', text: 'yes' }],
      structuredContent: { n: 1 },
    })
  })

  it('fails the command with the type of its error as the code', async () => {
    expect(await instance.callTool(callOf('neutral', { ok: false }))).toEqual({
      content: [{ type: 'text', text: 'I will not.' }],
      isError: true,
      _meta: { code: 'refused' },
    })
  })
})

describe('a call', () => {
  it('gets its task, its command and a signal', async () => {
    const execute = vi.fn(() => 'ok')
    await one({ execute }).callTool({ ...callOf('it', { a: 1 }), taskId: 'task_1', commandId: 'cmd_1' })
    expect(execute).toHaveBeenCalledWith(
      { a: 1 },
      {
        signal: expect.any(AbortSignal) as AbortSignal,
        progress: expect.any(Function) as () => void,
        taskId: 'task_1',
        commandId: 'cmd_1',
      },
    )
  })

  it('has the same signal in a copy of its context', async () => {
    const execute = vi.fn((_input: unknown, context: InstanceToolContext) => {
      const copy = { ...context }
      expect(copy.signal).toBeInstanceOf(AbortSignal)
      expect(context.signal).toBe(copy.signal)
    })
    await one({ execute }).callTool(callOf('it'))
    expect(execute).toHaveReturned()
  })

  it('lets a tool replace its signal, or delete it', async () => {
    const other = AbortSignal.abort()
    const execute = vi.fn((_input: unknown, context: InstanceToolContext) => {
      expect(Object.assign(context, { signal: other }).signal).toBe(other)
      expect({ ...context }).toMatchObject({ signal: other, taskId: 'task_1' })
      expect(Reflect.deleteProperty(context, 'signal')).toBe(true)
    })
    await one({ execute }).callTool({ ...callOf('it'), taskId: 'task_1' })
    expect(execute).toHaveReturned()
  })

  describe('whose signal is first read after it was given up', () => {
    async function signalAfter(giveUp: (instance: Instance, call: ReturnType<typeof callOf>) => void) {
      const call = callOf('it')
      const instance = one({
        execute: (_input, context) => {
          giveUp(instance, call)
          return Promise.reject(context.signal.reason as Error)
        },
      })
      return instance.callTool(call).catch((reason: unknown) => reason)
    }

    it('finds it aborted by the caller, with the reason', async () => {
      expect(await signalAfter((_instance, call) => call.abort())).toMatchObject({ message: 'given up' })
    })

    it('finds it aborted by the end of the instance, with the reason', async () => {
      const reason = await signalAfter((instance) => void instance.close())
      expect(reason).toMatchObject({
        code: 'INSTANCE_DISCONNECTED',
        message: 'Instance here is gone: The instance was closed.',
      })
    })

    it.each([
      ['an object', { message: 'enough' }],
      ['a number', 42],
      ['an object without a prototype', Object.create(null) as object],
    ])('rejects with the reason itself, even if it is %s', async (_what, reason) => {
      const controller = new AbortController()
      const called = one({ execute: () => 'done' }).callTool({ ...callOf('it'), signal: controller.signal })
      controller.abort(reason)
      await expect(called).rejects.toBe(reason)
    })

    it('finds the first of two reasons', async () => {
      const callFirst = await signalAfter((instance, call) => {
        call.abort()
        void instance.close()
      })
      expect(callFirst).toMatchObject({ message: 'given up' })
      const instanceFirst = await signalAfter((instance, call) => {
        void instance.close()
        call.abort()
      })
      expect(instanceFirst).toMatchObject({ code: 'INSTANCE_DISCONNECTED' })
    })
  })

  it('leaves no listener on the signal of its caller, whenever the tool reads its own', async () => {
    const call = callOf('it')
    await one({ execute: (_input, { signal }) => signal.aborted }).callTool(call)
    let context: InstanceToolContext | undefined
    await one({ execute: (_input, given) => void (context = given) }).callTool(call)
    const { signal } = { ...context } as InstanceToolContext
    expect(getEventListeners(call.signal, 'abort')).toEqual([])
    // A call that has ended cannot be given up.
    call.abort()
    expect([signal.aborted, context?.signal.aborted]).toEqual([false, false])
  })

  it('that has ended has a signal that does not abort, even if it is first read after a later abort', async () => {
    const call = callOf('it')
    let context: InstanceToolContext | undefined
    const instance = one({ execute: (_input, given) => void (context = given) })
    await instance.callTool(call)
    call.abort()
    await instance.close()
    expect(context?.signal.aborted).toBe(false)
  })

  it('that was given up has an aborted signal, even if it is first read after the end', async () => {
    const call = callOf('it')
    let context: InstanceToolContext | undefined
    const instance = one({
      execute: (_input, given) => {
        context = given
        call.abort()
      },
    })
    await instance.callTool(call)
    expect(context?.signal.reason).toMatchObject({ message: 'given up' })
  })

  it('reports no progress after it was given up', async () => {
    const call = callOf('it')
    await one({
      execute: (_input, { progress }) => {
        progress(1)
        call.abort()
        progress(2)
      },
    }).callTool(call)
    expect(call.progress).toEqual([{ progress: 1 }])
  })

  it('reports no progress after it has ended', async () => {
    let late: (progress: number) => void = () => undefined
    const call = callOf('it')
    await one({
      execute: (_input, { progress }) => {
        progress(1)
        late = progress
      },
    }).callTool(call)
    late(2)
    expect(call.progress).toEqual([{ progress: 1 }])
  })

  it('S5: does not end before its tool has, so that its lane waits', async () => {
    let finish: (value: string) => void = () => undefined
    const call = callOf('it')
    let isSettled = false
    const ended = one({ execute: () => new Promise((resolve) => (finish = resolve)) })
      .callTool(call)
      .finally(() => (isSettled = true))
    await Promise.resolve()
    call.abort()
    await new Promise((resolve) => queueMicrotask(() => resolve(undefined)))
    expect(isSettled).toBe(false)
    finish('late')
    expect(await ended).toMatchObject({ content: [{ text: 'late' }] })
  })

  it('S6: reports an abort listener that throws to the console, without onError', async () => {
    const said = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => said.mockRestore())
    const boom = new Error('boom')
    const instance = one({
      execute: (_input, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            resolve('stopped')
            throw boom
          })
        }),
    })
    const call = callOf('it')
    const ended = instance.callTool(call)
    await Promise.resolve()
    call.abort()
    expect(await ended).toMatchObject({ content: [{ text: 'stopped' }] })
    expect(said.mock.calls).toEqual([['[agent-tasks] abort listener of instance here:', boom]])
  })

  it('S6: survives an abort listener that throws', async () => {
    const onError = vi.fn()
    const boom = new Error('boom')
    const call = callOf('it')
    const ended = one(
      {
        execute: (_input, { signal }) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              throw boom
            })
            signal.addEventListener('abort', () => resolve('stopped'))
          }),
      },
      onError,
    ).callTool(call)
    await Promise.resolve()
    call.abort()
    expect(await ended).toMatchObject({ content: [{ text: 'stopped' }] })
    expect(onError).toHaveBeenCalledWith(boom)
  })
})

describe('an instance of functions', () => {
  it('throws for two tools of the same name', () => {
    const tool = { name: 'it', execute: () => 1 }
    expect(() => localInstance({ id: 'here', tools: [tool, tool] })).toThrow(InstanceError)
  })

  it('closes after the grace period when a tool does not stop', async () => {
    const clock = createManualClock()
    const instance = localInstance({
      id: 'here',
      clock,
      tools: [{ name: 'it', execute: () => new Promise(() => undefined) }],
    })
    void instance.callTool(callOf('it')).catch(() => undefined)
    await Promise.resolve()
    const closed = instance.close()
    clock.advance(2000)
    await closed
  })
})
