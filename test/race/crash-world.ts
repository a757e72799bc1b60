/** One life of an agent host in a race with crashes: the real manager, reminders and auto-trigger, on the store of the race. */
import {
  createAgentTasks,
  type AgentTasks,
  type AsyncTaskInfo,
  type Runner,
  type Turn,
  type WasDelivered,
} from '../../src/index.js'
import { StoreError, type Store } from '../../src/store/index.js'
import type { Race } from '../../src/testing/index.js'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { CrashScript, CrashStep } from './crash-script.js'
import { emptyNotes, Judge, type Notes } from './crash-judge.js'

/** What survives a crash besides the store. */
export interface Disk {
  readonly notes: Notes
  readonly used: { writes: number; turns: number; names: number }
}

export const emptyDisk = (): Disk => ({ notes: emptyNotes(), used: { writes: 0, turns: 0, names: 0 } })

/** How to break a host. */
export interface CrashSabotage {
  readonly wrapStore?: (store: Store) => Store
  readonly breakManager?: (manager: AsyncTaskManager) => void
}

/** The agent did not read a message. */
class RefusedError extends Error {
  override readonly name = 'RefusedError'
}

/** The errors that a race may report. */
const EXPECTED = ['store', 'delivery', 'late-result']

export class CrashWorld {
  readonly tasks: AgentTasks
  readonly judge: Judge
  readonly #race: Race<Disk>
  readonly #script: CrashScript

  constructor(race: Race<Disk>, script: CrashScript, { wrapStore, breakManager }: CrashSabotage) {
    const { notifyCancelled, maxAsyncTasks, answers, failing, attempts } = script
    this.#race = race
    this.#script = script
    // An answer that comes later may come too late: the clock races, too.
    const isExact = answers === 'at once'
    this.judge = new Judge(race.disk.notes, { notifyCancelled, isExact, attempts, isDiskSound: failing.length === 0 })
    this.look()
    const disk = this.#failing(race.store)
    const wasDelivered = this.#wasDelivered()
    let names = 0
    this.tasks = createAgentTasks({
      store: wrapStore?.(disk) ?? disk,
      clock: race.clock,
      maxAsyncTasks,
      notifyCancelled,
      createId: (prefix) => `${prefix}-${race.life}-${(names += 1)}`,
      onError: (error, { source }) => {
        if (!EXPECTED.includes(source)) this.judge.notes.problems.push(`A2: ${source} reported ${String(error)}`)
      },
      // A race also tries the orders in which a turn exceeds its limit, and then its results are delivered again.
      turnTimeoutMs: Infinity,
      findRunner: () => ({ run: this.#run, retry: { attempts, on: ['interrupted'] } }),
      isAgentBusy: () => false,
      triggerAgentTurn: (_, { deliveryId, taskIds }) => this.#turn(deliveryId, taskIds),
      ...(wasDelivered && { wasDelivered }),
    })
    breakManager?.(this.manager)
    this.manager.settled$.subscribe((record) => this.judge.hear(record))
  }

  get manager(): AsyncTaskManager {
    return this.tasks.getAsyncTaskManager()
  }

  get problem(): string | undefined {
    return this.judge.notes.problems[0]
  }

  look(): void {
    this.judge.look(this.#race.store.contents())
  }

  conclude(): void {
    this.judge.conclude(this.manager.getAllTasks(), this.#race.store.contents())
  }

  /** A9: nothing is left when it has been disposed of. */
  checkDisposal(): void {
    const { pending } = this.#race.clock
    if (pending > 0) throw new Error(`A9: ${pending} timers are left after dispose`)
  }

  async take(step: CrashStep): Promise<unknown> {
    switch (step.do) {
      case 'launch':
      case 'register':
        return this.#admit(step.do)
      case 'launch child':
        return this.#launchChild(this.judge.taskIds[step.nth])
      case 'complete':
      case 'fail':
      case 'cancel':
        return this.#end(step.do, this.judge.taskIds[step.nth])
      case 'turn':
        return this.#remind(step.isAccepted)
      case 'confirm':
        return this.tasks.confirm(this.judge.notes.transcript.at(-1) ?? '')
    }
  }

  // Steps

  #launchChild(parentId: string | undefined): string {
    const parent = parentId === undefined ? undefined : this.manager.getTask(parentId)
    return parent?.status === 'running' ? this.#admit('launch', parent.id) : 'no parent'
  }

  #admit(by: 'launch' | 'register', parentId?: string): string {
    const { used } = this.#race.disk
    used.names += 1
    const id = `task-${used.names}`
    const input = { id, subagentName: 'agent', goalPrompt: 'look into it', ...(parentId !== undefined && { parentId }) }
    this.judge.announce(id)
    try {
      if (by === 'launch') this.manager.launch(input, this.#run)
      else this.manager.registerTask(input)
      this.judge.admit(id)
      return id
    } catch (error) {
      this.judge.refuse(id)
      return String(error)
    }
  }

  readonly #run: Runner = async ({ id }, { signal, attempt }) => {
    this.judge.start(id, attempt)
    signal.addEventListener('abort', () => this.judge.cancel(id), { once: true })
    await this.#race.pause(attempt === 1 ? `the run of ${id}` : `attempt ${attempt} of ${id}`)
    return { final_message: id }
  }

  #end(how: 'complete' | 'fail' | 'cancel', id: string | undefined): boolean {
    if (id === undefined) return false
    if (how === 'complete') return this.manager.completeTask(id, { final_message: 'done' })
    if (how === 'fail') return this.manager.failTask(id, 'no luck')
    const isCancelled = this.manager.cancelTask(id)
    if (isCancelled) this.judge.cancel(id)
    return isCancelled
  }

  /** A turn that the host starts itself. The message is in the transcript after it was accepted. */
  async #remind(isAccepted: boolean): Promise<string> {
    const carried: { deliveryId: string; records: AsyncTaskInfo[] }[] = []
    const readTurn = ({ reminder }: Turn): void => {
      if (reminder === undefined) return
      const { deliveryId, taskIds } = reminder
      this.judge.handOut(deliveryId)
      // The records as the message has them.
      carried.push({ deliveryId, records: this.#records(taskIds) })
    }
    try {
      if (this.#script.isSlow) {
        await this.tasks.withTurn(async (turn) => {
          readTurn(turn)
          await this.#race.pause('a turn of the host')
          if (!isAccepted) throw new RefusedError()
        })
      } else {
        readTurn(this.tasks.beforeTurn())
        this.tasks.afterTurn({ accepted: isAccepted })
      }
    } catch (error) {
      if (error instanceof StoreError || error instanceof RefusedError) return error.name
      throw error
    }
    if (!isAccepted) return 'refused'
    // The acceptance may be on the disk before the transcript is.
    for (let ticks = 0; ticks < 4; ticks += 1) await Promise.resolve()
    for (const { deliveryId, records } of carried) await this.#append(deliveryId, records)
    return 'accepted'
  }

  /** A turn of the auto-trigger. The message is in the transcript before it is accepted. */
  async #turn(deliveryId: string, taskIds: readonly string[]): Promise<void> {
    const { used } = this.#race.disk
    const outcome = this.#script.turns[used.turns] ?? 'accept'
    used.turns += 1
    this.judge.handOut(deliveryId)
    const records = this.#records(taskIds)
    if (this.#script.isSlow) await this.#race.pause('the agent reads')
    if (outcome === 'refuse') throw new RefusedError()
    await this.#append(deliveryId, records)
    if (this.#script.isSlow) await this.#race.pause('the agent answers')
  }

  #records(taskIds: readonly string[]): AsyncTaskInfo[] {
    return taskIds.flatMap((id) => this.manager.getTask(id) ?? [])
  }

  #append(deliveryId: string, records: readonly AsyncTaskInfo[]): Promise<void> {
    return this.#race.message('the transcript', () => {
      this.#race.note(`${deliveryId} tells ${records.map(({ id, status }) => `${id} ${status}`).join(', ')}`)
      this.judge.tell(deliveryId, records)
    })
  }

  // The disk, and the memory of the host

  #failing(store: Store): Store {
    const { used } = this.#race.disk
    return {
      ...store,
      write: (changes) => {
        used.writes += 1
        if (this.#script.failing.includes(used.writes)) {
          this.#race.note('a write fails')
          throw new StoreError('STORE_FULL', 'the disk is full')
        }
        store.write(changes)
      },
    }
  }

  #wasDelivered(): WasDelivered | undefined {
    const { answers } = this.#script
    const { transcript } = this.#race.disk.notes
    switch (answers) {
      case 'at once':
        return (id) => transcript.includes(id)
      case 'later':
        return async (id) => {
          await this.#race.pause('the transcript is read')
          return transcript.includes(id)
        }
      case 'never':
        return () => undefined
      case 'throws':
        return () => {
          throw new Error('the transcript is broken')
        }
      case 'silent':
        return undefined
    }
  }
}
