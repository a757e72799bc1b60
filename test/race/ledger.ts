/**
 * What a race may say afterwards: the test's own account of who is owed what, kept without the manager's records.
 * Whatever contradicts it is a violation; the first one decides, since the rest may follow from it.
 */

export type TaskState = 'running' | 'completed' | 'failed' | 'cancelled'

interface TaskAccount {
  readonly id: string
  owner: string
  state: TaskState
  /** Its place among the ends. */
  endedAs: number
  /** A message that carried it was accepted, a wait returned it, or the host said that its model knows. */
  isAccepted: boolean
  /** Its owner went away without an heir. */
  isDropped: boolean
}

/** A message on its way, or ended. */
export interface Message {
  readonly name: string
  /** While it is on its way, no turn starts. */
  readonly isExclusive: boolean
  readonly owner: string
  readonly taskIds: readonly string[]
  /** When it is given up. */
  readonly deadline?: number | undefined
  isOpen: boolean
}

/** A wait for tasks: while it is pending their ends are its own. */
export interface Wait {
  readonly claimed: ReadonlySet<string>
  isPending: boolean
  /** The ids of what has ended, if that is enough. */
  readonly whenOver: () => readonly string[] | undefined
  readonly deadline: number | undefined
}

export class Ledger {
  readonly tasks = new Map<string, TaskAccount>()
  readonly messages: Message[] = []
  readonly waits: Wait[] = []
  readonly #violations: string[] = []
  readonly #notifyCancelled: boolean
  #ends = 0

  constructor(notifyCancelled: boolean) {
    this.#notifyCancelled = notifyCancelled
  }

  // What happened

  register(id: string, owner: string): void {
    this.tasks.set(id, { id, owner, state: 'running', endedAs: 0, isAccepted: false, isDropped: false })
  }

  /**
   * Notes an end before it is asked for: whoever is told of it inside the call finds it here.
   * @returns whether it will be granted
   */
  end(id: string, state: Exclude<TaskState, 'running'>): boolean {
    const task = this.#task(id)
    if (task.state !== 'running') return false
    task.state = state
    task.endedAs = this.#ends += 1
    return true
  }

  /** Notes a message that goes out, and that it carries what is owed, all of it, and nothing else. */
  open(message: Omit<Message, 'isOpen'>, text: string): Message {
    const expected = this.owed(message.owner)
    const told = [...text.matchAll(/"agent_id": "([^"]+)"/g)].map(([, id]) => id ?? '')
    this.check(
      same(told, message.taskIds),
      () => `A5: ${message.name} says ${list(told)}, has ${list(message.taskIds)}`,
    )
    this.check(same(told, expected), () => `A5: ${message.name} carries ${list(told)}, owed is ${list(expected)}`)
    const others = this.exclusives(message.owner)
    if (message.isExclusive) {
      this.check(others.length === 0, () => `A6: ${message.name} starts while ${others.join()} is in flight`)
    }
    const opened: Message = { ...message, isOpen: true }
    this.messages.push(opened)
    return opened
  }

  /** Notes that a message was accepted, now or after its end. */
  accept(message: Message): void {
    message.isOpen = false
    this.acceptTasks(message.taskIds)
  }

  acceptTasks(taskIds: Iterable<string>): void {
    for (const id of taskIds) {
      const task = this.#task(id)
      if (task.state !== 'running') task.isAccepted = true
    }
  }

  /** Notes a wait for these tasks, which is over at once if they have ended. What was told of already is not claimed. */
  wait(taskIds: readonly string[], mode: 'all' | 'any', deadline: number | undefined): Wait {
    const claimed = new Set(taskIds.filter((id) => !this.#task(id).isAccepted))
    const whenOver = (): readonly string[] | undefined => {
      const ended = taskIds.filter((id) => this.#task(id).state !== 'running')
      const needed = mode === 'any' ? Math.min(1, taskIds.length) : taskIds.length
      return ended.length >= needed ? ended : undefined
    }
    const wait = { claimed, isPending: true, whenOver, deadline }
    this.waits.push(wait)
    const ended = whenOver()
    if (ended !== undefined) this.endWait(wait, ended)
    return wait
  }

  /** Notes what a wait has returned; nothing if it was aborted. */
  endWait(wait: Wait, returned: readonly string[]): void {
    wait.isPending = false
    this.acceptTasks(returned)
  }

  releaseOwner(owner: string, heir: string | undefined): void {
    if (heir === owner) return
    for (const task of this.tasks.values()) {
      if (task.owner !== owner || task.isAccepted) continue
      if (heir === undefined) task.isDropped = true
      else task.owner = heir
    }
  }

  // What follows from it

  /** What is owed to an owner and not on its way, in the order in which it ended. */
  owed(owner: string): string[] {
    return [...this.tasks.values()]
      .filter((task) => task.owner === owner && this.isOwing(task) && !this.isOnItsWay(task.id))
      .sort((a, b) => a.endedAs - b.endedAs)
      .map((task) => task.id)
  }

  /** Whether a message that is out carries it, or a wait is to return it. */
  isOnItsWay(id: string): boolean {
    return this.isAwaited(id) || this.messages.some((message) => message.isOpen && message.taskIds.includes(id))
  }

  /** The names of an owner's messages on their way that let no turn start; there should be one at most. */
  exclusives(owner: string): string[] {
    return this.messages
      .filter((message) => message.isOpen && message.isExclusive && message.owner === owner)
      .map((message) => message.name)
  }

  running(): string[] {
    return [...this.tasks.values()].filter((task) => task.state === 'running').map((task) => task.id)
  }

  /** Whether a message about it has yet to be accepted. */
  isOwing(task: TaskAccount): boolean {
    const owes = task.state === 'cancelled' ? this.#notifyCancelled : task.state !== 'running'
    return owes && !task.isAccepted && !task.isDropped
  }

  isAccepted(id: string): boolean {
    return this.tasks.get(id)?.isAccepted === true
  }

  isAwaited(id: string): boolean {
    return this.waits.some((wait) => wait.isPending && wait.claimed.has(id))
  }

  // What was wrong

  check(isRight: boolean, describe: () => string): void {
    if (!isRight) this.#violations.push(describe())
  }

  /** Nothing is going on at the time `now`: whatever had to end by itself has ended. */
  checkOver(now: number): void {
    for (const { name, isOpen, deadline = Infinity } of this.messages) {
      this.check(!isOpen || now <= deadline, () => `A6: ${name} was not given up at ${deadline}`)
    }
    for (const { isPending, whenOver, deadline = Infinity } of this.waits) {
      this.check(!isPending || (now <= deadline && whenOver() === undefined), () => 'A6: a wait goes on after its end')
    }
  }

  /** @throws if anything was wrong so far */
  conclude(schedule: string): void {
    const [first] = this.#violations
    if (first !== undefined) throw new Error(`${first}\n${schedule}`)
  }

  #task(id: string): TaskAccount {
    const task = this.tasks.get(id)
    if (task === undefined) throw new Error(`the ledger has no task ${id}`)
    return task
  }
}

const list = (ids: readonly string[]): string => (ids.length === 0 ? 'nothing' : ids.join(', '))

const same = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((id, index) => id === b[index])
