// One run on a worker: what it reads before it begins, what it writes, and what is left when it has ended.
import { getEventListeners } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { MAX_WAITING_MESSAGES } from '../../../src/features/questions/inbox.js'
import { failureLog } from '../../../src/bullmq/failure-log.js'
import { jobKeys } from '../../../src/bullmq/job-keys.js'
import * as scripts from '../../../src/bullmq/job-scripts.js'
import { WorkerRun } from '../../../src/bullmq/worker-run.js'
import type { SubagentRequest } from '../../../src/tools/subagents.js'
import type { ResolvedRunner, RunFunction } from '../../../src/engine/runner.js'
import { scriptedRedis, type SentScript } from '../../support/scripted-redis.js'

const NO_NEWS = [null, null, [], []]
const LOCK_MS = 20_000

/** A run; Redis answers as `answers` says, and otherwise that nothing is new and that the lock is its own. */
function open(answers: Readonly<Record<string, (sent: SentScript) => unknown>> = {}) {
  const lines: string[] = []
  const scripted = scriptedRedis(scripts, (sent) => {
    const answer = answers[sent.script]
    if (answer !== undefined) return answer(sent)
    return ['BEGIN_RUN', 'TAKE'].includes(sent.script) ? NO_NEWS : 1
  })
  const run = new WorkerRun({
    redis: scripted.redis,
    keys: jobKeys({ prefix: 'bull', queue: 'q' }, 'job'),
    token: 'mine',
    lockMs: LOCK_MS,
    log: (line: string) => void lines.push(line),
    logFailure: failureLog((line) => void lines.push(line)),
    data: {
      input: { id: 't', subagentName: 'research', goalPrompt: 'find', params: { depth: 2 } },
      owner: 'main',
      attempt: 1,
      host: 'host-channel',
    },
  })
  /** What it has written, in order. */
  const written = () => scripted.of('WRITE').flatMap(({ further }) => further)
  return { ...scripted, run, lines, written }
}

const runOn = (run: WorkerRun, fn: RunFunction<SubagentRequest>) => run.run({ run: fn })
const never = () => expect.unreachable('it must not start')
const end = { ok: true }

describe('a run on a worker', () => {
  it('W3: begins under its lock, and has what its host had said before', async () => {
    const { run, of, sent } = open({ BEGIN_RUN: () => [null, 'soon', [], [['5-0', ['m', 'early']]]] })
    const runner: ResolvedRunner<SubagentRequest> = {
      run: async (input, { messages, wrapUp, taskId }) => {
        for await (const message of messages) {
          const { reason } = wrapUp as { reason: Error }
          return { ...input, message, taskId, why: reason.message }
        }
        return {}
      },
      takesMessages: true,
    }
    expect(await run.run(runner)).toEqual({
      id: 't',
      subagent: 'research',
      goal: 'find',
      context: { depth: 2 },
      message: 'early',
      taskId: 't',
      why: 'soon',
    })
    expect(of('BEGIN_RUN')[0]?.values).toEqual({
      agent: 'bull:q:job:agent',
      down: 'bull:q:job:down',
      queue: 'bull:q',
      id: 'job',
      token: 'mine',
      lockMs: LOCK_MS,
    })
    // It has said nothing, and its lock is as good as new.
    expect(sent.map(({ script }) => script)).toEqual(['BEGIN_RUN'])
  })

  it.each([
    ['was cancelled before', () => ['not needed', null, [], []], 'not needed'],
    ['was cancelled without a reason', () => ['', null, [], []], /aborted/],
    ['is no longer its own', () => null, /^The worker lost the lock of this job: /],
  ])('W3: does not start when it %s', async (_what, answer, message) => {
    const { run } = open({ BEGIN_RUN: answer })
    await expect(runOn(run, never)).rejects.toThrow(message)
  })

  it('W1: that is refused does not start, and its failure has the code', async () => {
    const { run, written } = open()
    run.abort(Object.assign(new Error('It was started before.'), { code: 'INTERRUPTED' }))
    await expect(runOn(run, never)).rejects.toThrow('It was started before.')
    const [what, name, text] = written()
    expect([what, name]).toEqual(['set', 'failure'])
    expect(JSON.parse(String(text))).toMatchObject({ error: 'It was started before.', code: 'INTERRUPTED' })
  })

  it('K13: that is stopped with its worker is interrupted, which is written before it has ended', async () => {
    const { run, written } = open()
    let before: { readonly reason: unknown; readonly written: readonly unknown[] } | undefined
    const ended = runOn(run, async (_, { signal }) => {
      run.suspend()
      await new Promise((resolve) => setImmediate(resolve))
      // Asserted later, because a run may throw anything when it is stopped.
      before = { reason: signal.reason, written: written() }
      throw new Error('The program has exited with code 143.')
    })
    await expect(ended).rejects.toThrow('The worker that ran this task was stopped.')
    expect(before?.reason).toMatchObject({ code: 'SUSPENDED', name: 'AbortError' })
    expect(before?.written.slice(0, 2)).toEqual(['set', 'failure'])
    for (const text of [before?.written[2], written().at(-1)]) {
      expect(JSON.parse(String(text))).toMatchObject({ code: 'INTERRUPTED', wasSuspended: true })
    }
  })

  it.each([
    ['completes with what it returns', end, end],
    ['is interrupted when it returns nothing', {}, undefined],
  ])('K13: that is stopped with its worker %s', async (_name, output, expected) => {
    const { run } = open()
    const ended = runOn(run, () => {
      run.suspend()
      return output
    })
    if (expected === undefined) await expect(ended).rejects.toThrow('The worker that ran this task was stopped.')
    else expect(await ended).toEqual(expected)
  })

  it('K13: that was cancelled is not interrupted by a stop of its worker', async () => {
    const { run, written } = open({ BEGIN_RUN: () => ['not needed', null, [], []] })
    const ended = runOn(run, never)
    await expect(ended).rejects.toThrow('not needed')
    run.suspend()
    expect(JSON.parse(String(written().at(-1)))).toMatchObject({ name: 'AbortError' })
  })

  it('W2: writes what it says in one tick at once, in order, under its lock and with a number of its own', async () => {
    const { run, of, written } = open()
    await runOn(run, (_, context) => {
      context.append('one ')
      context.append('two')
      context.report({ progress: 1, total: 2 })
      context.spend({ tokens: 3 })
      context.spend({ tokens: 4, cost: 1 })
      context.offer('so far')
      context.offer('more')
      return end
    })
    expect(written()).toEqual([
      ...['output', '', 'one two', 'progress', '', '{"progress":1,"total":2}'],
      ...['set', 'spent', '{"tokens":7,"cost":1}', 'offer', '', '{"final_message":"more"}'],
    ])
    expect(of('WRITE').map(({ values }) => values)).toEqual([
      {
        agent: 'bull:q:job:agent',
        up: 'bull:q:job:up',
        queue: 'bull:q',
        id: 'job',
        token: 'mine',
        lockMs: LOCK_MS,
        host: 'host-channel',
        keptSeconds: 86_400,
        mostBytes: 1_048_576,
        entryBytes: 64,
        write: 'mine:1',
      },
    ])
  })

  it('W2: sends again what Redis has refused, under the same number', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    let refused = 0
    const { run, of, lines } = open({
      WRITE: () => {
        if (refused > 0) return 1
        refused += 1
        throw new Error('OOM')
      },
    })
    const ended = runOn(run, (_, context) => {
      context.append('text')
      return end
    })
    await vi.advanceTimersByTimeAsync(999)
    expect(of('WRITE')).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    await ended
    expect(of('WRITE').map(({ values }) => values['write'])).toEqual(['mine:1', 'mine:1'])
    expect(lines).toEqual(['Task t: output or progress cannot be written to Redis: OOM'])
  })

  it('W1: that has lost its lock is stopped, says so once, and writes nothing more', async () => {
    const { run, of, lines } = open({ WRITE: () => 0 })
    await runOn(run, async (_, context) => {
      context.append('text')
      await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
      context.append('more')
      await expect(context.ask('Which?')).rejects.toThrow()
      return end
    })
    expect(of('WRITE')).toHaveLength(1)
    expect(lines).toEqual([
      'Task t: the worker lost the lock of this job, because it had no connection to Redis for too long, or because Redis has lost the job. The run is stopped, and its result is discarded.',
    ])
  })

  it('W6: that took long takes its lock back before it ends, and is stopped by nothing after that', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { run, of } = open()
    await runOn(run, () => {
      vi.advanceTimersByTime(LOCK_MS / 2 + 1)
      return end
    })
    expect(of('KEEP_LOCK').map(({ values }) => values)).toEqual([
      { queue: 'bull:q', id: 'job', token: 'mine', lockMs: LOCK_MS },
    ])
    run.wake()
    expect(of('TAKE')).toEqual([])
  })

  it('W2: looks once more when it is woken while it looks, and takes no message twice', async () => {
    const answers: ((answer: unknown) => void)[] = []
    const { run, of } = open({ TAKE: () => new Promise((resolve) => answers.push(resolve)) })
    const taken: string[] = []
    const runner: ResolvedRunner = {
      run: async (_, { messages }) => {
        for (const _each of [1, 2, 3]) run.wake()
        answers.shift()?.([null, null, [], [['1-0', ['m', 'one']]]])
        for await (const message of messages) {
          taken.push(message)
          if (taken.length === 2) break
          while (answers.length === 0) await Promise.resolve()
          answers.shift()?.([null, null, [], [['2-0', ['m', 'two']]]])
        }
        return end
      },
      takesMessages: true,
    }
    await run.run(runner)
    expect(taken).toEqual(['one', 'two'])
    expect(of('TAKE').map(({ values }) => values['after'])).toEqual(['0-0', '1-0'])
  })

  it('W2: asks, has each answer, and withdraws what is still asked when it ends', async () => {
    const { run, written } = open({ TAKE: () => [null, null, ['1', '{"action":"decline"}', '2', '', '9', '{}'], []] })
    const asked: unknown[] = []
    await runOn(run, async (_, context) => {
      const ask = (message: string) => context.ask(message)
      const first = ask('Which?')
      const second = ask('When?')
      second.catch((error: unknown) => asked.push((error as { code?: string }).code))
      run.wake()
      asked.push(await first)
      ask('Where?').catch((error: unknown) => asked.push((error as { code?: string }).code))
      await Promise.resolve()
      return end
    })
    await Promise.resolve()
    expect(asked).toEqual([{ action: 'decline' }, 'QUESTION_WITHDRAWN', 'QUESTION_WITHDRAWN'])
    const names = written().filter((_, at) => at % 3 === 1)
    expect(names).toEqual(expect.arrayContaining(['q:1', 'q:2', 'a:1', 'a:2', 'q:3']))
  })

  it('W2: has at most 16 open questions, of bounded size', async () => {
    const { run } = open()
    await runOn(run, async (_, context) => {
      const ask = (message: string) => context.ask(message)
      await expect(ask('x'.repeat(70_000))).rejects.toThrow(/question/)
      const open = Array.from({ length: 16 }, () => ask('Which?'))
      await expect(ask('Which?')).rejects.toMatchObject({ code: 'TOO_MANY_QUESTIONS' })
      for (const each of open) each.catch(() => undefined)
      return end
    })
  })

  it('W2: a question may have exactly 64 KiB of JSON', async () => {
    const small = open()
    await runOn(small.run, (_, context) => {
      context.ask({ message: 'x' }).catch(() => undefined)
      return end
    })
    const rest = 65_536 - String(small.written()[2]).length
    const { run, written } = open()
    // A control character has six bytes in JSON.
    const message = `${'\u0001'.repeat(Math.floor(rest / 6))}${'x'.repeat(1 + (rest % 6))}`
    await runOn(run, async (_, context) => {
      context.ask({ message }).catch(() => undefined)
      await expect(context.ask({ message: `${message}x` })).rejects.toThrow(/question/)
      return end
    })
    expect(written().filter((_, at) => at % 3 === 1)).toEqual(['q:1'])
    expect(Buffer.byteLength(String(written()[2]))).toBe(65_536)
  })

  it('W2: a question whose signal aborts is withdrawn once, and one that was answered listens no more', async () => {
    const { run, written } = open({ TAKE: () => [null, null, ['1', '{"action":"decline"}'], []] })
    const [answered, withdrawn, before] = [new AbortController(), new AbortController(), new AbortController()]
    before.abort(new Error('too late'))
    await runOn(run, async (_, context) => {
      await expect(context.ask({ message: 'Never?' }, { signal: before.signal })).rejects.toThrow('too late')
      const first = context.ask({ message: 'Which?' }, { signal: answered.signal })
      const second = context.ask({ message: 'When?' }, { signal: withdrawn.signal })
      run.wake()
      await first
      expect(getEventListeners(answered.signal, 'abort')).toEqual([])
      answered.abort()
      withdrawn.abort()
      await expect(second).rejects.toMatchObject({ code: 'QUESTION_WITHDRAWN' })
      return end
    })
    const said = written()
    const items = said.flatMap((what, at) => (at % 3 === 0 ? [`${String(what)} ${String(said[at + 1])}`] : []))
    expect(items).toEqual(['set q:1', 'set q:2', 'delete a:1', 'delete q:2'])
  })

  it('W2: takes the messages that did not fit when there is room again, and ends them with the run', async () => {
    const all = Array.from({ length: MAX_WAITING_MESSAGES + 2 }, (_, at) => [`${at + 1}-0`, ['m', `message ${at + 1}`]])
    const { run, of } = open({
      BEGIN_RUN: () => [null, null, [], all],
      TAKE: ({ values }) => [null, null, [], all.slice(Number(String(values['after']).split('-')[0]))],
    })
    const taken: string[] = []
    let left: AsyncIterator<string> | undefined
    await run.run({
      takesMessages: true,
      run: async (_, { messages }) => {
        left = messages[Symbol.asyncIterator]()
        while (taken.length < all.length) taken.push((await left.next()).value as string)
        return end
      },
    })
    expect(taken).toEqual(all.map((_, at) => `message ${at + 1}`))
    expect(of('TAKE')[0]?.values['after']).toBe(`${MAX_WAITING_MESSAGES}-0`)
    expect(await left?.next()).toEqual({ done: true, value: undefined })
  })

  it('W2: looks for what its host has said when it was woken before it has begun', async () => {
    const { run, of } = open()
    const ended = runOn(run, async () => {
      await new Promise(setImmediate)
      return end
    })
    run.wake()
    expect(of('TAKE')).toEqual([])
    await ended
    expect(of('TAKE')).toHaveLength(1)
  })

  it('W6: writes nothing again over a connection that was closed for good', async () => {
    const { run, of, redis, lines } = open({
      WRITE: () => {
        throw new Error('Connection is closed.')
      },
    })
    await runOn(run, (_, context) => {
      Object.assign(redis, { status: 'end' })
      context.append('text')
      return end
    })
    expect([of('WRITE').length, lines]).toEqual([1, []])
  })

  it('has no store of its own, launches no tasks and has no children', async () => {
    const { run } = open()
    await runOn(run, async (_, { durability, launch, children }) => {
      expect(durability).toMatchObject({ folder: undefined, key: undefined, isResumed: false })
      await expect(durability?.saveProgram({ pid: 1 } as never)).resolves.toBeUndefined()
      expect(() => launch({} as never)).toThrow(expect.objectContaining({ code: 'PARENT_ENDED' }))
      expect(children.ids()).toEqual([])
      expect(await children.waitFor(['a'])).toEqual({ settled: [], pending: [], unknown: ['a'] })
      expect(await children.waitFor()).toEqual({ settled: [], pending: [], unknown: [] })
      expect(children.cancel('a')).toBe(false)
      return end
    })
  })
})
