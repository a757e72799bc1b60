/**
 * One life of an agent host in a race with crashes: the real manager, reminders and auto-trigger, on the store of the race. A host that ends cleanly
 * is followed by another one in the same life.
 */
import {
  AgentTasksError,
  createAgentTasks,
  type AgentTasks,
  type AsyncTaskInfo,
  type Runner,
  type Turn,
  type TurnDelivery,
} from '../../src/index.js'
import { StoreError, type Store } from '../../src/store/index.js'
import type { Race } from '../../src/testing/index.js'
import { isSuspension } from '../../src/async-tasks/cancel-reason.js'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { CrashScript, CrashStep } from './crash-script.js'
import { hasEnded } from '../../machines/task-status.js'
import { emptyNotes, isRefused, Judge, type Notes } from './crash-judge.js'
import type { WasDelivered } from '../../src/features/delivery/unknown-deliveries.js'
import { DisposedError } from '../../src/errors.js'
import { createTurns } from '../../src/parts.js'

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

/** A message, and the records as it has them. */
interface Message {
  readonly deliveryId: string
  readonly records: readonly AsyncTaskInfo[]
}

/** The agent did not read a message. */
class RefusedError extends Error {
  override readonly name = 'RefusedError'
}

/** The errors that a race may report. */
const EXPECTED = ['store', 'delivery', 'late-result']

export class CrashWorld {
  tasks: AgentTasks
  readonly judge: Judge
  readonly #race: Race<Disk>
  readonly #script: CrashScript
  readonly #sabotage: CrashSabotage
  #names = 0
  #endRace: () => void = () => undefined
  readonly #over = new Promise<void>((resolve) => (this.#endRace = resolve))

  constructor(race: Race<Disk>, script: CrashScript, sabotage: CrashSabotage) {
    const { notifyCancelled, answers, failing, attempts } = script
    this.#race = race
    this.#script = script
    this.#sabotage = sabotage
    // An answer that comes later may come too late: the clock races, too.
    const isExact = answers === 'at once'
    this.judge = new Judge(race.disk.notes, { notifyCancelled, isExact, attempts, isDiskSound: failing.length === 0 })
    this.look()
    this.tasks = this.#start()
  }

  #start(): AgentTasks {
    const { notifyCancelled, maxAsyncTasks, attempts } = this.#script
    const { clock, store, life } = this.#race
    const { wrapStore, breakManager } = this.#sabotage
    const disk = this.#failing(store)
    const wasDelivered = this.#wasDelivered()
    const turns = createTurns((_text, _signal, delivery) => this.#turn(delivery))
    const tasks = createAgentTasks({
      store: wrapStore?.(disk) ?? disk,
      clock,
      maxAsyncTasks,
      notifyCancelled,
      createId: (prefix) => `${prefix}-${life}-${(this.#names += 1)}`,
      onError: (error, { source }) => {
        if (!EXPECTED.includes(source)) this.judge.notes.problems.push(`A2: ${source} reported ${String(error)}`)
      },
      // A race also tries the orders in which a turn exceeds its limit, and then its results are delivered again.
      turnTimeoutMs: Infinity,
      findRunner: () => ({ run: this.#run, retry: { attempts, on: ['interrupted'] } }),
      isAgentBusy: turns.isBusy$,
      triggerAgentTurn: turns.triggerAgentTurn,
      ...(wasDelivered && { wasDelivered }),
    })
    const manager = tasks.getAsyncTaskManager()
    breakManager?.(manager)
    manager.settled$.subscribe((record) => this.judge.hear(record))
    return tasks
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
      case 'restart':
        return this.#restart()
    }
  }

  // Steps

  /** A clean end, and a new start. */
  async #restart(): Promise<string> {
    const { tasks, manager } = this
    const before = manager.getAllTasks()
    const disposal = tasks.dispose()
    const records = manager.getAllTasks()
    await disposal
    this.judge.end(records)
    if (this.tasks !== tasks) return 'restarted by another'
    this.judge.stop(before, records, this.#race.store.contents())
    this.look()
    this.tasks = this.#start()
    return 'restarted'
  }

  async #launchChild(parentId: string | undefined): Promise<string> {
    const parent = parentId === undefined ? undefined : this.manager.getTask(parentId)
    return parent?.status === 'running' ? this.#admit('launch', parent.id) : 'no parent'
  }

  /** A launch is accepted when it is stored. */
  async #admit(by: 'launch' | 'register', parentId?: string): Promise<string> {
    const { used } = this.#race.disk
    used.names += 1
    const id = `task-${used.names}`
    const input = { id, subagentName: 'agent', goalPrompt: 'look into it', ...(parentId !== undefined && { parentId }) }
    const { manager } = this
    this.judge.announce(id)
    try {
      if (by === 'launch') manager.launch(input, this.#run)
      else manager.registerTask(input)
      await manager.stored()
      this.judge.admit(id)
      return id
    } catch (error) {
      // A task that has ended before its launch was refused keeps that end, which is stored later.
      const record = manager.getTask(id)
      if (record === undefined || !hasEnded(record.status) || isRefused(record)) this.judge.refuse(id)
      return String(error)
    }
  }

  readonly #run: Runner = async ({ id }, { signal, attempt }) => {
    this.judge.start(id, attempt)
    const { clock } = this.#race
    let abortedAt: number | undefined
    signal.addEventListener(
      'abort',
      () => {
        abortedAt = clock.now()
        // A task whose process closes has not ended.
        if (isSuspension(signal)) this.judge.suspend(id)
        else this.judge.cancel(id)
      },
      { once: true },
    )
    await this.#race.pause(attempt === 1 ? `the run of ${id}` : `attempt ${attempt} of ${id}`)
    // No time has passed since the stop, so the run is within its grace.
    if (isSuspension(signal) && clock.now() === abortedAt) this.judge.returned(id)
    return { final_message: id }
  }

  async #end(how: 'complete' | 'fail' | 'cancel', id: string | undefined): Promise<boolean> {
    if (id === undefined) return false
    if (how === 'complete') return this.manager.completeTask(id, { final_message: 'done' })
    if (how === 'fail') return this.manager.failTask(id, 'no luck')
    if (!this.manager.cancelTask(id)) return false
    try {
      await this.manager.stored()
      this.judge.cancel(id)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
    }
    return true
  }

  /** A turn that the host starts itself. The message is in the transcript after it was accepted; a repeat, before: it is confirmed at once. */
  async #remind(isAccepted: boolean): Promise<string> {
    const { tasks } = this
    const { registry } = tasks.getAsyncTaskManager()
    const hasEnded = (): boolean => registry.isDisposed
    try {
      if (this.#script.isSlow) {
        const carried = await tasks.withTurn(async (turn) => {
          const message = this.#read(turn)
          await this.#race.pause('a turn of the host')
          if (!isAccepted || hasEnded()) throw new RefusedError()
          if (turn.reminder?.isRepeat !== true) return message
          await this.#append(message)
          if (hasEnded()) throw new RefusedError()
          return undefined
        })
        await this.#appendLater(carried)
      } else {
        const turn = tasks.beforeTurn()
        await turn.reminder?.stored
        const message = this.#read(turn)
        if (isAccepted && turn.reminder?.isRepeat === true) {
          await this.#append(message)
          turn.reminder.acknowledge()
        } else {
          tasks.afterTurn({ accepted: isAccepted })
          if (isAccepted) await this.#appendLater(message)
        }
      }
    } catch (error) {
      const isRefusal = error instanceof StoreError || error instanceof RefusedError || error instanceof DisposedError
      if (isRefusal) return error.name
      // The other actor has begun a turn while the lease of this one was being stored.
      if (error instanceof AgentTasksError && error.code === 'LEASE_ENDED') return error.code
      throw error
    }
    return isAccepted ? 'accepted' : 'refused'
  }

  /** The message of a turn, with the records as it has them. */
  #read({ reminder }: Turn): Message | undefined {
    if (reminder === undefined) return undefined
    const { deliveryId, taskIds } = reminder
    this.judge.handOut(deliveryId, taskIds)
    return { deliveryId, records: this.#records(taskIds) }
  }

  /** The acceptance may be on the disk before the transcript is. */
  async #appendLater(message: Message | undefined): Promise<void> {
    for (let ticks = 0; ticks < 4; ticks += 1) await Promise.resolve()
    await this.#append(message)
  }

  /** A turn of the auto-trigger. The message is in the transcript before it is accepted. */
  async #turn(delivery: TurnDelivery | undefined): Promise<void> {
    if (delivery === undefined) return
    const { deliveryId, taskIds, signal } = delivery
    const { used } = this.#race.disk
    const outcome = this.#script.turns[used.turns] ?? 'accept'
    used.turns += 1
    this.judge.handOut(deliveryId, taskIds)
    const records = this.#records(taskIds)
    if (this.#script.isSlow) await this.#race.pause('the agent reads')
    // A host that has ended calls no tool of the next one.
    if (signal.aborted) throw new RefusedError()
    const taken = this.#script.takes ? await this.#takeByTool() : []
    if (outcome === 'refuse') throw new RefusedError()
    await this.#append([{ deliveryId, records }, ...taken], signal)
    if (this.#script.isSlow) await this.#race.pause('the agent answers')
  }

  /** A tool call of a turn: what it returns is in the transcript, and delivered, with the message of the turn. */
  async #takeByTool(): Promise<readonly Message[]> {
    const { tasks } = this
    const owed = this.manager.getPendingNotifications('main').map(({ id }) => id)
    if (owed.length === 0) return []
    const { metadata, deliveryIds } = await tasks.tools.wait_for_async_tasks.execute({ task_ids: owed })
    const [deliveryId] = deliveryIds ?? []
    if (deliveryId === undefined) return []
    const taskIds = metadata?.['settled'] as readonly string[]
    this.judge.handOut(deliveryId, taskIds)
    return [{ deliveryId, records: this.#records(taskIds) }]
  }

  #records(taskIds: readonly string[]): AsyncTaskInfo[] {
    return taskIds.flatMap((id) => this.manager.getTask(id) ?? [])
  }

  /** A host that has ended writes nothing more. */
  async #append(messages: Message | undefined | readonly Message[], signal?: AbortSignal): Promise<void> {
    const written = [messages ?? []].flat() as readonly Message[]
    if (written.length === 0) return
    await this.#race.message('the transcript', () => {
      if (signal?.aborted === true) return
      for (const { deliveryId, records } of written) {
        this.#race.note(`${deliveryId} tells ${records.map(({ id, status }) => `${id} ${status}`).join(', ')}`)
        this.judge.tell(deliveryId, records)
      }
    })
  }

  // The disk, and the memory of the host

  #failing(store: Store): Store {
    const { used } = this.#race.disk
    return {
      ...store,
      write: async (changes) => {
        used.writes += 1
        const number = used.writes
        const isFailing = this.#script.failing.includes(number)
        if (!isFailing) await store.write(changes)
        if (this.#script.isStoreSlow) await this.#acknowledgement(number)
        if (!isFailing) return
        this.#race.note('a write fails')
        throw new StoreError('STORE_FULL', 'the disk is full')
      },
    }
  }

  /** A write is acknowledged in a turn of its own. */
  async #acknowledgement(number: number): Promise<void> {
    await Promise.race([this.#race.pause(`the answer to write ${number}`), this.#over])
  }

  /** The race is over: what is still open ends. */
  end(): void {
    this.#endRace()
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
