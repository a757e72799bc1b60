/** The conversations of a host: what an idle one keeps, and what a delivery in one of many costs. */
import { importEntry } from '../package.js'
import type { Subject } from '../subject.js'
import { bytesEach } from './heap.js'

const HOST = {
  maxAsyncTasks: -1,
  conversationIdleMs: Infinity,
  subagents: { work: () => 'done' },
  respond: () => undefined,
}

/** The bytes that one conversation keeps: opened and not used, or after a turn of its own and one for a result. */
export async function idleConversations(
  params: { count: number; hasTurns: boolean },
  checkout: string,
): Promise<Subject> {
  const { createAgentTasks } = await importEntry(checkout, '.')
  return bytesEach(params.count, async (count) => {
    const tasks = createAgentTasks(HOST)
    for (let n = 0; n < count; n += 1) {
      const conversation = tasks.conversation(`user-${n}`)
      if (!params.hasTurns) continue
      conversation.launch('work', 'g')
      await conversation.send('hello')
      await conversation.onIdle()
    }
    return tasks
  })
}

/** The timers of conversations that have had two turns each and are idle. */
export async function idleTimers(count: number, checkout: string): Promise<Subject> {
  const { createAgentTasks } = await importEntry(checkout, '.')
  const timers = new Set<unknown>()
  const clock = {
    now: () => Date.now(),
    setTimeout: (run: () => void, ms: number) => {
      const timer = setTimeout(() => {
        timers.delete(timer)
        run()
      }, ms)
      timers.add(timer)
      return timer
    },
    clearTimeout: (timer: unknown) => {
      timers.delete(timer)
      clearTimeout(timer as NodeJS.Timeout)
    },
  }
  const tasks = createAgentTasks({ ...HOST, clock })
  return {
    run: async () => {
      for (let n = 0; n < count; n += 1) {
        const conversation = tasks.conversation(`user-${n}`)
        conversation.launch('work', 'g')
        await conversation.send('hello')
        await conversation.onIdle()
      }
      return timers.size
    },
    close: () => tasks.dispose(),
  }
}

/** A task of one conversation, from its launch to the end of the turn that delivers its result. The others are idle. */
export async function deliveredAmong(others: number, checkout: string): Promise<Subject> {
  const { createAgentTasks } = await importEntry(checkout, '.')
  const tasks = createAgentTasks(HOST)
  for (let n = 0; n < others; n += 1) tasks.conversation(`user-${n}`)
  const conversation = tasks.conversation('one')
  return {
    run: async (times) => {
      for (let n = 0; n < times; n += 1) {
        conversation.launch('work', 'g')
        await conversation.onIdle()
      }
      return undefined
    },
    close: () => tasks.dispose(),
  }
}

/** A result for each of `count` conversations in one tick, and their turns. */
export async function owedAtOnce(count: number, checkout: string): Promise<Subject> {
  const { createAgentTasks } = await importEntry(checkout, '.')
  const tasks = createAgentTasks(HOST)
  return {
    run: async () => {
      const before = process.cpuUsage()
      for (let n = 0; n < count; n += 1) tasks.conversation(`user-${n}`).launch('work', 'g')
      await tasks.manager.onIdle()
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1000 / count
    },
    close: () => tasks.dispose(),
  }
}
