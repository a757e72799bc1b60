/**
 * Tasks of MCP clients of both generations, on a store that fails at times: a client sees its own tasks, no others, and an end only after it
 * was stored.
 */
import fc from 'fast-check'
import { ProtocolError } from '@modelcontextprotocol/server'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { createBackend } from '../../src/mcp/backend.js'
import { Confirmations } from '../../src/mcp/confirmations.js'
import { assumedExchange } from '../../src/mcp/exchange.js'
import { createTaskHandles, type TaskHandles } from '../../src/mcp/task-handles.js'
import { Elicitations } from '../../src/mcp/elicitations.js'
import { createTasks2025 } from '../../src/mcp/tasks-2025.js'
import { createTasksExtension } from '../../src/mcp/tasks-extension.js'
import { createManualClock } from '../../src/testing/manual-clock.js'
import { breakableStore } from '../support/breakable-store.js'

/** Changes the handles that both generations answer from. */
export type AlterHandles = (handles: TaskHandles, manager: AsyncTaskManager) => TaskHandles

type Owner = 'alice' | 'bob'
type Action =
  | { readonly type: 'create'; readonly by: Owner }
  | { readonly type: 'end' | 'cancel'; readonly index: number }
  | { readonly type: 'get'; readonly index: number; readonly by: Owner; readonly is2025: boolean }
  | { readonly type: 'list'; readonly by: Owner }
  | { readonly type: 'break' }
  | { readonly type: 'mend' }

interface Known {
  readonly id: string
  readonly owner: Owner
  /** As it is in memory. */
  status: 'working' | 'completed' | 'cancelled'
  /** As it is stored. */
  stored: Known['status']
}

const by = fc.constantFrom<Owner>('alice', 'bob')
const index = fc.nat(5)
const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ type: fc.constant('create' as const), by }) },
    { weight: 3, arbitrary: fc.record({ type: fc.constantFrom('end' as const, 'cancel' as const), index }) },
    { weight: 5, arbitrary: fc.record({ type: fc.constant('get' as const), index, by, is2025: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ type: fc.constant('list' as const), by }) },
    { weight: 2, arbitrary: fc.constantFrom<Action>({ type: 'break' }, { type: 'mend' }) },
  ),
  { maxLength: 25, size: 'max' },
)

class Host {
  readonly #clock = createManualClock()
  readonly #store = breakableStore()
  readonly #manager = new AsyncTaskManager({
    clock: this.#clock,
    store: this.#store.store,
    maxAsyncTasks: -1,
    onError: () => undefined,
  })
  readonly #backend = createBackend({ clock: this.#clock, writeLog: () => undefined })
  readonly #handles: TaskHandles
  readonly #close: () => void
  readonly #tasks: Known[] = []
  readonly #ends = new Map<string, () => void>()

  constructor(alter: AlterHandles) {
    const backend = { ...this.#backend, manager: this.#manager }
    const handles = createTaskHandles({
      backend,
      confirmations: new Confirmations(this.#manager),
      toEarlierResult: () => ({ content: [] }),
    })
    this.#close = handles.close
    this.#handles = alter(handles, this.#manager)
  }

  async perform(action: Action): Promise<void> {
    const { state } = this.#store
    if (action.type === 'break') state.isBroken = true
    else if (action.type === 'mend') {
      state.isBroken = false
      this.#clock.advance(60_000)
    } else if (action.type === 'create') this.#create(action.by)
    else if (action.type === 'list') this.#checkList(action.by)
    else {
      const task = this.#tasks[action.index % Math.max(1, this.#tasks.length)]
      if (task === undefined) return
      if (action.type === 'get') await this.#checkGet(task, action)
      else if (task.status === 'working') {
        task.status = action.type === 'end' ? 'completed' : 'cancelled'
        if (action.type === 'end') this.#ends.get(task.id)?.()
        else this.#manager.cancelTask(task.id)
      }
    }
    await new Promise((resolve) => setImmediate(resolve))
    if (!state.isBroken) for (const task of this.#tasks) task.stored = task.status
  }

  #create(owner: Owner): void {
    if (this.#store.state.isBroken) return
    const { id } = this.#manager.launch(
      { subagentName: 'helper', goalPrompt: 'g', owner },
      ({ id: taskId }, { signal }) =>
        new Promise((resolve) => {
          const end = (): void => resolve({})
          this.#ends.set(taskId, end)
          signal.addEventListener('abort', end)
        }),
    )
    this.#handles.create({ taskId: id, toResult: () => ({ content: [] }) }, owner)
    this.#tasks.push({ id, owner, status: 'working', stored: 'working' })
  }

  async #checkGet({ id, owner, stored }: Known, { by: asker, is2025 }: { by: Owner; is2025: boolean }): Promise<void> {
    let status: unknown
    try {
      const handle = this.#handles.find(id, asker)
      const declared = { hasTasks: true, hasElicitation: false }
      status = is2025
        ? createTasks2025(this.#handles, this.#manager, new Elicitations(this.#manager)).get(handle, false).status
        : (await createTasksExtension(this.#handles, this.#manager).get(handle, declared, assumedExchange()))['status']
    } catch (error) {
      status = error instanceof ProtocolError ? error.code : error
    }
    const expected = asker === owner ? stored : -32602
    if (status !== expected) throw new Error(`${asker} sees ${String(status)} of a task of ${owner}, not ${expected}`)
  }

  #checkList(asker: Owner): void {
    const { tasks } = createTasks2025(this.#handles, this.#manager, new Elicitations(this.#manager)).list(
      asker,
      undefined,
      false,
    ) as {
      tasks: { taskId: string }[]
    }
    const own = this.#tasks.filter(({ owner }) => owner === asker).map(({ id }) => id)
    const listed = tasks.map(({ taskId }) => taskId)
    if (listed.join() !== own.join()) throw new Error(`${asker} has ${own.join()}, and is shown ${listed.join()}`)
  }

  async close(): Promise<void> {
    this.#store.state.isBroken = false
    this.#close()
    await Promise.all([this.#manager.dispose(), this.#backend.close()])
  }
}

/** F12, for tasks. */
export function mcpTasksProperty(alter: AlterHandles = (handles) => handles): fc.IAsyncProperty<[Action[]]> {
  return fc.asyncProperty(actions, async (sequence) => {
    const host = new Host(alter)
    try {
      for (const action of sequence) await host.perform(action)
    } finally {
      await host.close()
    }
  })
}
