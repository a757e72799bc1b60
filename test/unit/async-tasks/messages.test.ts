/** Messages to running tasks: taken at most once, in order, or refused with the reason. */
import { describe, expect, it } from 'vitest'
import { functionRunner, type RunContext, type RunFunction } from '../../../src/index.js'
import { MAX_WAITING_BYTES, MAX_WAITING_MESSAGES } from '../../../src/features/questions/inbox.js'
import { deferred, setUpHost, settle } from '../tools/tool-host.js'

/** A task that takes messages when the test lets it. */
function setUp({ takesMessages = true, timeoutMs }: { takesMessages?: boolean; timeoutMs?: number } = {}) {
  const host = setUpHost()
  const taken: string[] = []
  const go = deferred<undefined>()
  const end = deferred<undefined>()
  const contexts: RunContext[] = []
  const runner = functionRunner(
    async (_input, context) => {
      contexts.push(context)
      const { messages } = context
      await go.promise
      for await (const message of messages) {
        taken.push(message)
        if (message === 'stop reading') break
      }
      await end.promise
      return `took ${taken.length}`
    },
    { takesMessages },
  )
  const { id } = host.manager.launch(
    {
      subagentName: 's',
      goalPrompt: 'g',
      graceMs: 1_000,
      budget: { tokens: 1 },
      ...(timeoutMs !== undefined && { timeoutMs }),
    },
    runner,
  )
  const send = (message: string) => host.manager.sendToTask(id, message)
  const spend = () => contexts[0]?.spend({ tokens: 2 })
  return { ...host, id, taken, send, spend, go: () => go.resolve(undefined), end: () => end.resolve(undefined) }
}

describe('a message to a task', () => {
  it('F7: is taken once, in the order in which it was sent, before and after the run begins to read', async () => {
    const { send, go, taken, manager, id } = setUp()
    expect(send('one')).toEqual({ sent: true })
    send('two')
    go()
    await settle()
    send('three')
    send('four')
    await settle()
    expect(taken).toEqual(['one', 'two', 'three', 'four'])
    expect(manager.getTask(id)?.messagesSent).toBe(4)
  })

  it('F7: ends the loop of the run when the task ends, and is refused from then on', async () => {
    const { send, go, end, manager, id } = setUp()
    go()
    end()
    await settle()
    manager.completeTask(id, {})
    await settle()
    expect(send('late')).toEqual({ sent: false, reason: `Task ${JSON.stringify(id)} has ended: it is completed.` })
    expect(manager.getTask(id)).not.toHaveProperty('messagesSent')
  })

  it.each([
    [
      'unknown',
      (host: ReturnType<typeof setUp>) => host.manager.sendToTask('nobody', 'm'),
      'There is no task "nobody".',
    ],
    [
      'too long',
      (host: ReturnType<typeof setUp>) => host.send('x'.repeat(65_537)),
      'A message has at most 65536 bytes.',
    ],
    [
      'cancelled',
      (host: ReturnType<typeof setUp>) => {
        host.manager.cancelTask(host.id)
        return host.send('m')
      },
      'has ended: it is cancelled',
    ],
    [
      'overdue',
      (host: ReturnType<typeof setUp>) => {
        host.clock.advance(1_000)
        return host.send('m')
      },
      'is being stopped, because its deadline has passed',
    ],
    [
      'over its budget',
      (host: ReturnType<typeof setUp>) => {
        host.spend()
        return host.send('m')
      },
      'is concluding, because its budget is used up',
    ],
  ])('F7: is refused with the reason when its task is %s', async (_how, act, reason) => {
    const host = setUp({ timeoutMs: 1_000 })
    await settle()
    const result = act(host)
    expect(result.sent).toBe(false)
    expect(result).toHaveProperty('reason', expect.stringContaining(reason))
  })

  it('F7: is refused by a run that does not read messages, or reads them no more', async () => {
    const deaf = setUp({ takesMessages: false })
    expect(deaf.send('m')).toMatchObject({
      sent: false,
      reason: expect.stringContaining('takes no messages') as string,
    })
    deaf.go()
    const host = setUp()
    host.send('stop reading')
    host.send('never read')
    host.go()
    await settle()
    expect(host.taken).toEqual(['stop reading'])
    expect(host.send('m')).toMatchObject({
      sent: false,
      reason: expect.stringContaining('does not read messages any more') as string,
    })
    deaf.end()
    host.end()
  })

  it('F7: is refused when as many wait as may, in number and in bytes, until some are taken', async () => {
    const host = setUp()
    for (let index = 0; index < MAX_WAITING_MESSAGES; index += 1) expect(host.send(String(index)).sent).toBe(true)
    expect(host.send('one more').sent).toBe(false)
    host.go()
    for (let turn = 0; turn < 10; turn += 1) await settle()
    expect(host.taken).toEqual(Array.from({ length: MAX_WAITING_MESSAGES }, (_, index) => String(index)))
    expect(host.send('one more').sent).toBe(true)
    const other = setUp()
    const large = 'é'.repeat(32_000)
    const fitting = Math.floor(MAX_WAITING_BYTES / 64_000)
    for (let index = 0; index < fitting; index += 1) expect(other.send(large).sent).toBe(true)
    expect(other.send(large).sent).toBe(false)
    expect(other.manager.getTask(other.id)?.messagesSent).toBe(fitting)
  })

  it('F7: must be a text', () => {
    const { send } = setUp()
    expect(() => send('')).toThrow('message')
    expect(() => send(7 as unknown as string)).toThrow('message: got 7')
  })

  it('is a run of its own for each reader: two loops share the messages', async () => {
    const { manager } = setUpHost()
    const taken: string[] = []
    const run: RunFunction = async (_input, { messages }) => {
      const read = async (): Promise<void> => {
        for await (const message of messages) taken.push(message)
      }
      await Promise.all([read(), read()])
      return {}
    }
    const { id } = manager.launch({ subagentName: 's', goalPrompt: 'g' }, { run, takesMessages: true })
    await settle()
    for (const message of ['a', 'b', 'c']) manager.sendToTask(id, message)
    await settle()
    expect(taken).toEqual(['a', 'b', 'c'])
    manager.cancelTask(id)
    await settle()
  })
})

it('F7: what a run has not taken is for the next run of its task', async () => {
  const host = setUpHost()
  const taken: string[] = []
  const runner = functionRunner(
    async (_input, { messages, attempt }) => {
      for await (const message of messages) {
        taken.push(`${attempt}: ${message}`)
        if (attempt === 1) throw Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' })
        if (message === 'c') break
      }
      return 'done'
    },
    { takesMessages: true },
  )
  const retry = { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 0 } } as const
  const { id } = host.manager.launch({ subagentName: 's', goalPrompt: 'g' }, { run: runner, retry })
  await settle()
  for (const message of ['a', 'b', 'c']) expect(host.manager.sendToTask(id, message)).toEqual({ sent: true })
  await settle()
  host.clock.advance(1)
  await settle()
  expect(taken).toEqual(['1: a', '2: b', '2: c'])
  expect(host.manager.getTask(id)?.status).toBe('completed')
})
