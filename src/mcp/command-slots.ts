/** How many commands each client has: one client cannot take the slots of the others. */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { errorResult, type ToolResult } from '../tools/tool.js'
import { LIMIT_ADVICE, type CallSlots } from './client-slots.js'

/** A command takes its slot until its program has ended, also where its task was cancelled before that. */
export class CommandSlots implements CallSlots {
  readonly #manager: AsyncTaskManager
  readonly #max: number
  /** The owners of the calls that have not launched their command yet. */
  readonly #launching = new Map<symbol, string>()

  /** @param max the most commands of one client; -1 for no limit */
  constructor(manager: AsyncTaskManager, max: number) {
    this.#manager = manager
    this.#max = max
  }

  async launch(owner: string, call: (onLaunched: () => void) => Promise<ToolResult>): Promise<ToolResult> {
    if (this.#max !== -1 && this.#countOf(owner) >= this.#max) return this.#refusal()
    const launching = Symbol('launching')
    this.#launching.set(launching, owner)
    const onLaunched = (): void => void this.#launching.delete(launching)
    try {
      return await call(onLaunched)
    } finally {
      onLaunched()
    }
  }

  follow(_owner: string, result: ToolResult): ToolResult {
    return result
  }

  #countOf(owner: string): number {
    const launching = [...this.#launching.values()].filter((each) => each === owner).length
    return launching + this.#manager.registry.pools.command.countOf(owner)
  }

  #refusal(): ToolResult {
    const max = this.#max
    const reason = `Max commands (${max}) reached`
    const advice = `${LIMIT_ADVICE.join(', or ')}. One that was cancelled counts until its program has ended.`
    return errorResult('limit_reached', reason, { llmContent: `${reason}. ${advice}`, metadata: { max } })
  }
}
