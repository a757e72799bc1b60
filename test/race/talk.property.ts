/**
 * In any race of answers, follow-ups, repeats and crashes: a question is told once for each acceptance and answered once, a message to a task is
 * taken at most once and in order, and what is told again was asked for (F6, F7, F11).
 */
import fc from 'fast-check'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { createAgentTasks, type AgentTasks, type Runner } from '../../src/index.js'
import { raceOrders, type Race, type RaceOptions } from '../../src/testing/index.js'
import { chooserOf } from '../../src/testing/race-order.js'
import { timelineOf } from '../../src/testing/race-report.js'
import { runRace } from '../../src/testing/race-run.js'
import { talkScripts, type TalkScript, type TalkStep } from './talk-script.js'
import type { QuestionRef } from '../../machines/owed-questions.js'

/** What one message carried. */
interface Told {
  readonly taskIds: readonly string[]
  /** Names of questions, of one life. */
  readonly questions: readonly string[]
}

/** What survives a crash besides the store. */
interface Disk {
  readonly taskIds: string[]
  /** The transcript of the host. */
  readonly transcript: Record<string, Told>
  /** How often each result and each question may be told. */
  readonly allowed: Record<string, number>
  readonly answered: string[]
  /** The number of the last message that each task has taken. */
  readonly taken: Record<string, number>
  readonly problems: string[]
  readonly used: { sent: number; turns: number }
}

const emptyDisk = (): Disk => ({
  taskIds: [],
  transcript: {},
  allowed: {},
  answered: [],
  taken: {},
  problems: [],
  used: { sent: 0, turns: 0 },
})

/** How to break a host. */
export interface TalkSabotage {
  readonly breakManager?: (manager: AsyncTaskManager) => void
}

class TalkWorld {
  readonly tasks: AgentTasks
  readonly #race: Race<Disk>
  readonly #script: TalkScript

  constructor(race: Race<Disk>, script: TalkScript, { breakManager }: TalkSabotage) {
    this.#race = race
    this.#script = script
    let names = 0
    this.tasks = createAgentTasks({
      store: race.store,
      clock: race.clock,
      maxAsyncTasks: -1,
      turnTimeoutMs: Infinity,
      maxDelayMs: 0,
      createId: (prefix) => `${prefix}-${race.life}-${(names += 1)}`,
      onError: (error, { source }) => {
        if (source !== 'delivery' && source !== 'late-result') this.#problem(`${source} reported ${String(error)}`)
      },
      findRunner: () => ({ run: this.#run, retry: { attempts: script.attempts, on: ['interrupted'] } }),
      isAgentBusy: () => false,
      triggerAgentTurn: (_, { deliveryId, taskIds, questions }) => this.#turn(deliveryId, taskIds, questions),
      wasDelivered: (id) => id in this.#disk.transcript,
    })
    breakManager?.(this.manager)
  }

  get manager(): AsyncTaskManager {
    return this.tasks.getAsyncTaskManager()
  }

  get #disk(): Disk {
    return this.#race.disk
  }

  check(): void {
    const [problem] = this.#disk.problems
    if (problem !== undefined) throw new Error(problem)
  }

  /** The agent is idle: everything was told, and nothing is on its way. */
  conclude(): void {
    const { ledger } = this.manager.registry
    for (const { id, delivery, questions = [] } of this.manager.getAllTasks()) {
      if (delivery === 'leased' || delivery === 'owed') this.#problem(`F11: ${id} is still ${delivery}`)
      for (const { id: questionId } of questions) {
        const name = this.#nameOf({ taskId: id, questionId })
        if (this.#timesTold(name) === 0) this.#problem(`F6: ${name} was never told`)
      }
    }
    if (ledger.questions.owed().length > 0) this.#problem('F6: a question is still owed')
    this.check()
  }

  take(step: TalkStep): unknown {
    const id = 'nth' in step ? this.#disk.taskIds[step.nth] : undefined
    switch (step.do) {
      case 'launch':
        return this.#launch()
      case 'send':
        return id !== undefined && this.#send(id)
      case 'answer':
        return id !== undefined && this.#answer(id)
      case 'cancel':
        return id !== undefined && this.manager.cancelTask(id)
      case 'redeliver':
        return this.#redeliver(Object.keys(this.#disk.transcript)[step.nth])
      case 'turn':
        return this.#ownTurn(step.isAccepted)
      case 'call':
        return this.#call()
    }
  }

  // Runs

  readonly #run: Runner = {
    run: async ({ id }, context) => {
      const reading = this.#read(id, context.messages)
      for (let asked = 0; asked < this.#script.questions; asked += 1) await context.ask(`${id} asks`)
      await this.#race.pause(`the run of ${id}`)
      void reading
      return {}
    },
    takesMessages: true,
  }

  async #read(id: string, messages: AsyncIterable<string>): Promise<void> {
    for await (const message of messages) {
      const number = Number(message)
      if (number <= (this.#disk.taken[id] ?? 0)) this.#problem(`F7: ${id} took ${message} again, or too late`)
      this.#disk.taken[id] = number
      await this.#race.pause(`${id} reads`)
    }
  }

  // Steps

  #launch(): string {
    const id = `task-${this.#disk.taskIds.length + 1}`
    this.#disk.taskIds.push(id)
    this.manager.launch({ id, subagentName: 's', goalPrompt: 'g' }, this.#run)
    return id
  }

  #send(id: string): string {
    this.#disk.used.sent += 1
    const result = this.manager.sendToTask(id, String(this.#disk.used.sent))
    return result.sent ? `sent ${this.#disk.used.sent}` : result.reason
  }

  #answer(id: string): boolean {
    const question = this.manager.getTask(id)?.questions?.[0]
    if (question === undefined) return false
    const ref = { taskId: id, questionId: question.id }
    const isAnswered = this.manager.answerTask(id, question.id, { action: 'decline' })
    if (this.manager.answerTask(id, question.id, { action: 'cancel' })) this.#problem('F6: a second answer won')
    if (isAnswered && this.#disk.answered.includes(this.#nameOf(ref))) this.#problem('F6: answered twice')
    this.#disk.answered.push(this.#nameOf(ref))
    return isAnswered
  }

  #redeliver(deliveryId: string | undefined): boolean {
    if (deliveryId === undefined || !this.tasks.redeliver(deliveryId)) return false
    const { taskIds = [], questions = [] } = this.#disk.transcript[deliveryId] ?? {}
    const owed = taskIds.filter((id) => this.manager.getTask(id)?.delivery === 'owed')
    const asked = this.manager.registry.ledger.questions
      .owed()
      .map(({ entry, id }) => this.#nameOf({ taskId: entry.record.id, questionId: id }))
      .filter((name) => questions.includes(name))
    if (owed.length + asked.length === 0) this.#problem('F11: redeliver says true, and nothing is owed again')
    for (const name of [...owed, ...asked]) this.#disk.allowed[name] = (this.#disk.allowed[name] ?? 1) + 1
    return true
  }

  async #ownTurn(isAccepted: boolean): Promise<string | undefined> {
    const { reminder } = this.tasks.beforeTurn()
    if (reminder === undefined) return undefined
    await reminder.stored
    const told = this.#handOut(reminder.taskIds, reminder.questions)
    if (isAccepted) this.#tell(reminder.deliveryId, told)
    this.tasks.afterTurn({ accepted: isAccepted })
    return reminder.deliveryId
  }

  async #call(): Promise<unknown> {
    const { metadata } = await this.tasks.tools.check_async_tasks.execute({ action: 'list' })
    const carried = metadata?.['notification'] as
      { deliveryId: string; taskIds: readonly string[]; questions?: readonly QuestionRef[] } | undefined
    if (carried === undefined) return undefined
    this.#tell(carried.deliveryId, {
      taskIds: carried.taskIds,
      questions: (carried.questions ?? []).map((ref) => this.#nameOf(ref)),
    })
    return carried.deliveryId
  }

  async #turn(deliveryId: string, taskIds: readonly string[], questions?: readonly QuestionRef[]): Promise<void> {
    const outcome = this.#script.turns[this.#disk.used.turns] ?? 'accept'
    this.#disk.used.turns += 1
    const told = this.#handOut(taskIds, questions)
    await this.#race.pause('the agent reads')
    if (outcome === 'refuse') throw new Error('refused')
    this.#tell(deliveryId, told)
  }

  // What is told

  #handOut(taskIds: readonly string[], refs: readonly QuestionRef[] = []): Told {
    for (const { taskId, questionId } of refs) {
      const isOpen = this.manager.getTask(taskId)?.questions?.some(({ id }) => id === questionId) === true
      if (!isOpen) this.#problem(`F6: a message asks ${taskId} ${questionId}, which is not open`)
    }
    return { taskIds, questions: refs.map((ref) => this.#nameOf(ref)) }
  }

  #tell(deliveryId: string, told: Told): void {
    this.#disk.transcript[deliveryId] = told
    for (const name of [...told.taskIds, ...told.questions]) {
      const times = this.#timesTold(name)
      if (times > (this.#disk.allowed[name] ?? 1)) this.#problem(`F6, F11: ${name} was told ${times} times`)
    }
  }

  #timesTold(name: string): number {
    const all = Object.values(this.#disk.transcript).flatMap(({ taskIds, questions }) => [...taskIds, ...questions])
    return all.filter((told) => told === name).length
  }

  /** A question ends with its process; its id may come again. */
  #nameOf({ taskId, questionId }: QuestionRef): string {
    return `${taskId} ${questionId} of life ${this.#race.life}`
  }

  #problem(text: string): void {
    this.#disk.problems.push(text)
  }
}

/** The race of any script. */
export function talkRace(sabotage: TalkSabotage = {}): RaceOptions<TalkWorld, TalkScript, Disk> {
  const worlds: TalkWorld[] = []
  const actor = (steps: readonly TalkStep[]) =>
    steps.map((step) => ({
      label: 'nth' in step ? `${step.do} number ${step.nth}` : step.do,
      run: (world: TalkWorld) => world.take(step),
    }))
  return {
    name: 'talk',
    crashes: true,
    disk: emptyDisk,
    inputs: talkScripts,
    setup: (race, script) => {
      const world = new TalkWorld(race, script, sabotage)
      worlds.push(world)
      return world
    },
    actors: (_, { agent, person }) => ({ agent: actor(agent), person: actor(person) }),
    invariants: { 'nothing contradicts itself': (world) => world.check() },
    atEnd: { 'everything was told': (world) => world.conclude() },
    teardown: async (world) => {
      for (const dead of worlds.splice(0)) void dead.tasks.dispose()
      await world.tasks.dispose()
    },
  }
}

/** The same as a property, for `npm run faults`. */
export const talkProperty = (sabotage?: TalkSabotage): fc.IRawProperty<unknown> => {
  const race = talkRace(sabotage)
  return fc.asyncProperty(raceOrders(), talkScripts, async (order, script) => {
    const run = await runRace(race, chooserOf(order), script)
    if (run.failure !== undefined) throw new Error(`${run.failure.message}\n${timelineOf(run)}`)
  })
}
