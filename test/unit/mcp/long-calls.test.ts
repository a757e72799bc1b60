/** Calls that block for longer than clients wait. The test owns the clock. */
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { SubagentRunner } from '../../../src/tools/subagents.js'
import { until } from '../../support/lifelines.js'
import { overHttp, overStdio, textOf } from './clients.js'

const PROGRESS = { _meta: { progressToken: 'p' } }

describe('a task that runs in place', () => {
  it('continues in the background after backgroundAfterSeconds, says so, and its result comes with the next answer', async () => {
    const { ask, initialize, clock, end } = overStdio()
    await initialize()
    const running = ask(1, 'tools/call', { name: 'task', arguments: { subagent_name: 'slow', goal_prompt: 'g' } })
    await ask(2, 'ping', {})
    clock.advance(44_999)
    await ask(3, 'ping', {})
    clock.advance(1)
    const { structuredContent, ...answer } = await running
    expect(textOf(answer)).toContain('has not ended within 45 s')
    expect(structuredContent).toMatchObject({ status: 'running', async: true })
    end(structuredContent!['task_id'] as string, 'the answer')
    expect(textOf(await ask(4, 'tools/call', { name: 'list_instances' }))).toContain('the answer')
  })
})

describe('a task that runs in place and is detached', () => {
  it('F14: its call is answered at once, and its result comes with the next answer, once', async () => {
    const { call, manager, end } = await overHttp()
    const running = call('task', { subagent_name: 'slow', goal_prompt: 'g' })
    await until(() => manager.getAllTasks().length === 1)
    const { id } = manager.getAllTasks()[0]!
    expect(manager.detachTask(id)).toEqual({ detached: true })
    const { structuredContent, ...answer } = await running
    expect(textOf(answer)).toContain(`Task ${id} continues in the background`)
    expect(structuredContent).toMatchObject({ task_id: id, status: 'running', async: true })
    end(id, 'the answer')
    const answers = [await call('list_instances'), await call('list_instances')]
    expect(answers.map((each) => textOf(each).includes('the answer'))).toEqual([true, false])
  })

  it('F14: counts for its client as a task in the background, whose limit it may exceed when it was moved by time', async () => {
    const { ask, initialize, clock } = overStdio({ maxAsyncTasks: 1 })
    await initialize()
    const task = (id: number, more: object) =>
      ask(id, 'tools/call', { name: 'task', arguments: { subagent_name: 'slow', goal_prompt: 'g', ...more } })
    await task(1, { async: true })
    const running = task(2, { background_after_seconds: 10 })
    await ask(3, 'ping', {})
    clock.advance(10_000)
    expect(textOf(await running)).toContain('has not ended within 10 s')
    expect(textOf(await task(4, { async: true }))).toContain('Max async tasks (1) reached')
  })

  it.each([
    [{ backgroundAfterSeconds: 30 }, 30],
    [{}, 45],
  ])('F14: %j in the configuration means %d s', async (config, seconds) => {
    const { ask, initialize, clock } = overStdio(config)
    await initialize()
    const running = ask(1, 'tools/call', { name: 'task', arguments: { subagent_name: 'slow', goal_prompt: 'g' } })
    await ask(2, 'ping', {})
    clock.advance(seconds * 1000)
    expect(textOf(await running)).toContain(`has not ended within ${seconds} s`)
  })
})

describe('a client that sends a progress token', () => {
  it('is notified every 10 s until the call is answered', async () => {
    const { ask, initialize, clock, notices } = overStdio()
    await initialize()
    const launched = { name: 'task', arguments: { subagent_name: 'slow', goal_prompt: 'g', async: true } }
    await ask(1, 'tools/call', launched)
    const waiting = ask(2, 'tools/call', {
      name: 'wait_for_async_tasks',
      arguments: { timeout_seconds: 25 },
      ...PROGRESS,
    })
    await ask(3, 'ping', {})
    for (const seconds of [10, 10, 5]) {
      clock.advance(seconds * 1000)
      await ask(100 + clock.now(), 'ping', {})
    }
    await waiting
    const progress = notices.filter(({ method }) => method === 'notifications/progress')
    expect(progress.map(({ params }) => params)).toEqual([
      { progressToken: 'p', progress: 10, message: 'Waiting for 10 s.' },
      { progressToken: 'p', progress: 20, message: 'Waiting for 20 s.' },
    ])
    clock.advance(20_000)
    await ask(4, 'ping', {})
    expect(notices.filter(({ method }) => method === 'notifications/progress')).toHaveLength(2)
  })
})

describe('a task that runs in place, called with a progress token', () => {
  it('F12: sends on what its run reports, with a value that always increases, and then signs of life', async () => {
    const { contexts, ask, initialize, clock, notices, end } = overStdio()
    await initialize()
    const call = { name: 'task', arguments: { subagent_name: 'slow', goal_prompt: 'g' }, ...PROGRESS }
    const running = ask(1, 'tools/call', call)
    await ask(2, 'ping', {})
    const [[id, context]] = [...contexts] as [[string, Parameters<SubagentRunner>[1]]]
    const report = async (progress: number, message: string) => {
      context.report({ progress, total: 4, message })
      clock.advance(250)
      await ask(clock.now(), 'ping', {})
    }
    await report(1, 'one')
    await report(2, 'two')
    await report(2, 'two again')
    clock.advance(10_000)
    await ask(3, 'ping', {})
    end(id, 'done')
    await running
    const sent = notices.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params)
    expect(sent.map(({ message }) => message)).toEqual(['one', 'two', 'two again', 'Waiting for 11 s.'])
    const values = sent.map(({ progress }) => progress as number)
    expect(values.every((value, i) => i === 0 || value > values[i - 1]!)).toBe(true)
    expect(sent.map(({ total }) => total)).toEqual([4, 4, 4, undefined])
  })

  it('is notified four times a second at most, the last report included', async () => {
    const { contexts, ask, initialize, clock, notices } = overStdio()
    await initialize()
    const call = { name: 'task', arguments: { subagent_name: 'slow', goal_prompt: 'g' }, ...PROGRESS }
    void ask(1, 'tools/call', call)
    await ask(2, 'ping', {})
    const [context] = [...contexts.values()]
    for (let i = 1; i <= 1000; i += 1) context!.report(i)
    await ask(3, 'ping', {})
    clock.advance(250)
    await ask(4, 'ping', {})
    const sent = notices.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params)
    expect(sent.map(({ progress }) => progress)).toEqual([1, 1000])
  })
})

describe('over HTTP', () => {
  const META = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }

  it.each(['2025-11-25', '2026-07-28'])(
    'a call of %s is kept alive: its client hears something every 15 s',
    async (version) => {
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
      onTestFinished(() => void vi.useRealTimers())
      const { server, session } = await overHttp()
      const isModern = version === '2026-07-28'
      const sent = httpRequest(server.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...(isModern ? { 'mcp-protocol-version': version, 'mcp-method': 'tools/call', 'mcp-name': 'task' } : session),
        },
      })
      sent.on('error', () => undefined)
      const call = { name: 'task', arguments: { subagent_name: 'slow', goal_prompt: 'g' } }
      const params = { ...call, ...(isModern && { _meta: META }) }
      sent.end(JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'tools/call', params }))
      const answered = once(sent, 'response') as Promise<[IncomingMessage]>
      await until(() => vi.getTimerCount() > 0)
      vi.advanceTimersByTime(15_000)
      const [response] = await answered
      expect(response.headers['content-type']).toBe('text/event-stream')
      let text = ''
      response.on('data', (chunk) => (text += String(chunk))).on('error', () => undefined)
      await until(() => text.includes('keepalive'))
      const closed = new Promise((resolve) => response.once('close', resolve))
      sent.destroy()
      await closed
    },
  )
})
