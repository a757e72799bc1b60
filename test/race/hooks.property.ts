/**
 * Deliveries through the hooks of a client, in any order of launches, ends, turns, prompts, cancelled calls, lost answers, new conversations and crashes:
 * F23. The client is played: it writes its transcript before or after it asks the model, as the clients do. FC_NUM_RUNS=100000 explores that many orders.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AsyncTaskManager, AsyncTaskReminderService } from '../../src/index.js'
import { registryOf } from '../../src/async-tasks/manager.js'
import { claude } from '../../src/features/hooks/claude.js'
import type { HookCall, HookClient } from '../../src/features/hooks/hook-client.js'
import { hookDeliveries } from '../../src/features/hooks/hook-deliveries.js'
import { HookSession, type HookSessionOptions } from '../../src/features/hooks/hook-session.js'
import { qwen } from '../../src/features/hooks/qwen.js'
import { memoryStore, type MemoryStore } from '../../src/store/index.js'
import { createManualClock } from '../../src/testing/index.js'

/** Makes a session; a planted fault makes it wrong. */
export type CreateSession = (
  options: HookSessionOptions,
  id: string,
) => Pick<HookSession, 'answer' | 'toolCalled' | 'close'>

export type Step =
  | { readonly do: 'launch' | 'clear' | 'crash' | 'tool' }
  | { readonly do: 'end'; readonly nth: number }
  /** The turn ends. */
  | { readonly do: 'stop'; readonly then: Outcome }
  /** A person writes. */
  | { readonly do: 'prompt'; readonly then: Outcome }

/**
 * What happens to a call of a hook: it is answered, taken back, its answer is not written, the client has the answer and drops it before it asks the model,
 * or both processes are killed.
 */
type Outcome = 'answered' | 'cancelled' | 'lost' | 'dropped' | 'crash'

const kind = <Name extends Step['do']>(name: Name) => fc.constant(name)
const OUTCOMES: readonly Outcome[] = ['answered', 'answered', 'answered', 'cancelled', 'lost', 'dropped', 'crash']
const outcome = fc.constantFrom(...OUTCOMES)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('launch' as const) }) },
  { weight: 6, arbitrary: fc.record({ do: kind('end'), nth: fc.nat(5) }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: kind('stop'), then: outcome }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: kind('prompt'), then: outcome }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('clear' as const, 'tool' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: kind('crash') }) },
)

const OWNER = 'main'

const tick = async (): Promise<void> => {
  for (let n = 0; n < 3; n += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** A text that the model has been given, and whether a resumed conversation gives it again. */
interface Given {
  readonly text: string
  readonly isKept: boolean
}

class World {
  readonly #clock = createManualClock(0)
  readonly #create: CreateSession
  readonly #client: HookClient
  /** What the client writes at the end of a turn is in its transcript. Qwen Code does not write it. */
  readonly #keepsStops: boolean
  #store: MemoryStore = memoryStore()
  #conversation = 1
  #launched = 0
  #isContinued = false
  /** Whether the turn has ended without a call of its hook. */
  #isBroken = false
  readonly #ends = new Map<string, () => void>()
  readonly #ended = new Set<string>()
  /** The texts in requests to the model. */
  readonly given: Given[] = []
  #manager: AsyncTaskManager
  #session: ReturnType<CreateSession>

  constructor(client: HookClient, create: CreateSession) {
    this.#client = client
    this.#create = create
    this.#keepsStops = client !== qwen
    ;[this.#manager, this.#session] = this.#open()
  }

  #open(): [AsyncTaskManager, ReturnType<CreateSession>] {
    const manager = new AsyncTaskManager({
      store: this.#store,
      clock: this.#clock,
      graceMs: 0,
      maxAsyncTasks: 100,
      onError: (error) => assert.fail(String(error)),
      findRunner: () => ({ run: () => new Promise<string>(() => undefined) }),
    })
    const isKept = (token: string): boolean => this.given.some(({ text, isKept: is }) => is && text.includes(token))
    manager.reads.use(hookDeliveries).hasMessage = (_place, id) => isKept(id)
    const reminders = new AsyncTaskReminderService(manager)
    const options: HookSessionOptions = {
      manager,
      owner: OWNER,
      client: this.#client,
      lease: () => reminders.leaseReminder({ owner: OWNER }),
      isHeadless: () => true,
      isInTranscript: (path, token) => path !== undefined && isKept(token),
      isTranscript: () => false,
      hasStore: true,
    }
    return [manager, this.#create(options, `c${this.#conversation}`)]
  }

  async run(present: Step): Promise<void> {
    switch (present.do) {
      case 'launch': {
        const id = `t${(this.#launched += 1)}.`
        const run = (): Promise<string> =>
          new Promise((resolve) => this.#ends.set(id, () => resolve(`result of ${id}`)))
        this.#manager.launch({ id, subagentName: 's', goalPrompt: 'g', owner: OWNER }, { run })
        return tick()
      }
      case 'end': {
        const running = [...this.#ends.keys()]
        const id = running[present.nth % running.length]
        if (id === undefined) return
        this.#ends.get(id)?.()
        this.#ends.delete(id)
        this.#ended.add(id)
        return tick()
      }
      case 'tool':
        this.#session.toolCalled()
        return
      case 'clear':
        this.#conversation += 1
        this.#isContinued = false
        await this.#ask({ event: 'start' }, 'answered')
        return
      case 'crash':
        return this.#crash()
      case 'stop': {
        if (this.#isBroken) return
        const text = await this.#ask({ event: 'stop', isContinued: this.#isContinued }, present.then)
        this.#isContinued = text !== undefined
        // Some clients begin the turn that a hook has continued with a prompt.
        if (text !== undefined && this.#client !== claude) {
          await this.#ask({ event: 'prompt', prompt: text }, 'answered')
        }
        return
      }
      case 'prompt':
        this.#isContinued = false
        this.#isBroken = present.then === 'dropped' || present.then === 'cancelled'
        await this.#ask({ event: 'prompt', prompt: 'Hello' }, present.then)
        return
    }
  }

  /** Calls a hook. Returns the text with which the turn goes on. */
  async #ask(fields: Partial<HookCall> & Pick<HookCall, 'event'>, then: Outcome): Promise<string | undefined> {
    const call = { sessionId: `c${this.#conversation}`, transcriptPath: '/transcript', ...fields }
    const esc = new AbortController()
    const answer = this.#session.answer(call, esc.signal)
    let answered: Awaited<typeof answer> | undefined
    void answer.then((value) => (answered = value))
    await tick()
    if (then === 'cancelled' || answered === undefined) esc.abort()
    const { text, end } = await answer
    if (then === 'crash') {
      await this.#crash()
      return undefined
    }
    end(then !== 'lost')
    if (then === 'lost' || then === 'dropped' || text === undefined) return undefined
    this.given.push({ text, isKept: fields.event === 'prompt' || this.#keepsStops })
    return text
  }

  async #crash(): Promise<void> {
    await this.#manager.stored()
    const left = this.#store.copy()
    this.#session.close()
    for (const id of this.#ends.keys()) this.#ended.add(id)
    this.#ends.clear()
    this.#isContinued = false
    this.#isBroken = false
    void this.#manager.dispose()
    this.#store = left
    ;[this.#manager, this.#session] = this.#open()
    await this.#manager.recovered
    await tick()
  }

  /** Ends everything, and lets the client take what is owed. */
  async conclude(): Promise<void> {
    while (this.#ends.size > 0) await this.run({ do: 'end', nth: 0 })
    for (let n = 0; n < 20; n += 1) {
      await this.run({ do: 'prompt', then: 'answered' })
      await this.run({ do: 'stop', then: 'answered' })
    }
    const { ledger } = registryOf(this.#manager)
    assert.equal(ledger.outstanding(OWNER), 0, 'F23: something is owed or leased for ever')
    for (const id of this.#ended) {
      const texts = this.given.filter(({ text }) => text.includes(`task ${id} `) || text.includes(`of ${id}`))
      assert.notEqual(texts.length, 0, `F23: the end of ${id} was lost`)
      for (const { text } of texts.slice(1)) {
        assert.match(text, /possible repeat/, `F23: ${id} was repeated without a mark`)
      }
    }
  }

  async dispose(): Promise<void> {
    this.#session.close()
    await this.#manager.dispose()
  }
}

export const hooksProperty = (create: CreateSession = (options, id) => new HookSession(options, id)) =>
  fc.asyncProperty(
    fc.array(step, { minLength: 1, maxLength: 25 }),
    fc.constantFrom(claude, qwen, { ...qwen, maxContinuations: 3 }),
    async (steps, client) => {
      const world = new World(client, create)
      try {
        for (const one of steps) await world.run(one)
        await world.conclude()
      } finally {
        await world.dispose()
      }
    },
  )
