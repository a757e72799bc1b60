/**
 * The test's own ledger of a race, kept without the manager's records: which results are owed to whom. A contradiction is a violation.
 * Only the first one is reported, since the others may follow from it.
 */

export type TaskState = 'running' | 'completed' | 'failed' | 'cancelled'

interface TaskAccount {
  readonly id: string
  owner: string
  state: TaskState
  /** Its position among the ends. */
  endedAs: number
  /** A message with its result was accepted, a wait returned it, or the host marked it as notified. */
  isAccepted: boolean
  /** Its owner was released without an heir. */
  isDropped: boolean
  /** The id of the last turn with its result that failed: the next message repeats that turn. */
  repeatOf: string | undefined
}

/** A message. */
export interface Message {
  readonly name: string
  readonly deliveryId: string
  readonly isRepeat: boolean
  /** No other turn of the owner may start while it is open. */
  readonly isExclusive: boolean
  readonly owner: string
  readonly taskIds: readonly string[]
  /** When it expires. */
  readonly deadline?: number | undefined
  isOpen: boolean
}

/** A wait for tasks: while it is pending, it leases their results. */
export interface Wait {
  readonly claimed: ReadonlySet<string>
  isPending: boolean
  /** The ids of the ended tasks, if the wait is over. */
  readonly whenOver: () => readonly string[] | undefined
  readonly deadline: number | undefined
}

/** The maximum length of a message, in characters. */
const MESSAGE_CHARS = 20_000

/** How many long results fit into a message. */
const LONG_RESULTS = 2

/** The settings of a race that change what is owed, and what fits into a message. */
export interface LedgerSettings {
  readonly notifyCancelled: boolean
  readonly isLong: boolean
}

export class Ledger {
  readonly tasks = new Map<string, TaskAccount>()
  readonly messages: Message[] = []
  readonly waits: Wait[] = []
  readonly #violations: string[] = []
  readonly #deliveryIds = new Set<string>()
  readonly isLong: boolean
  readonly #notifyCancelled: boolean
  #ends = 0

  constructor({ notifyCancelled, isLong }: LedgerSettings) {
    this.#notifyCancelled = notifyCancelled
    this.isLong = isLong
  }

  // What happened

  register(id: string, owner: string): void {
    this.tasks.set(id, {
      id,
      owner,
      state: 'running',
      endedAs: 0,
      isAccepted: false,
      isDropped: false,
      repeatOf: undefined,
    })
  }

  /**
   * Records an end before the manager is called, for the callbacks inside that call.
   * @returns whether the manager must grant it
   */
  end(id: string, state: Exclude<TaskState, 'running'>): boolean {
    const task = this.#task(id)
    if (task.state !== 'running') return false
    task.state = state
    task.endedAs = this.#ends += 1
    return true
  }

  /** Records a message, and checks that it carries exactly what is owed, or as much of it as fits. */
  open(message: Omit<Message, 'isOpen'>, text: string): Message {
    const owed = this.owed(message.owner)
    const [repeatOf] = owed.map((id) => this.#task(id).repeatOf)
    const expected = this.#fitting(owed.filter((id) => this.#task(id).repeatOf === repeatOf))
    this.check(text.length <= MESSAGE_CHARS, () => `A5: ${message.name} has ${text.length} characters`)
    const carried = [...text.matchAll(/"agent_id": "([^"]+)"/g)].map(([, id]) => id ?? '')
    this.check(
      same(carried, message.taskIds),
      () => `A5: ${message.name} names ${list(carried)}, has ${list(message.taskIds)}`,
    )
    this.check(same(carried, expected), () => `A5: ${message.name} carries ${list(carried)}, owed is ${list(expected)}`)
    this.#checkId(message, repeatOf)
    const others = this.exclusives(message.owner)
    if (message.isExclusive) {
      this.check(others.length === 0, () => `A6: ${message.name} starts while ${others.join()} is in flight`)
    }
    const opened: Message = { ...message, isOpen: true }
    this.messages.push(opened)
    return opened
  }

  /** H6: a message that repeats a turn has its id. A task that it lacks gets another id later. */
  #checkId({ name, deliveryId, isRepeat, taskIds }: Omit<Message, 'isOpen'>, repeatOf: string | undefined): void {
    const isRight = repeatOf === undefined ? !this.#deliveryIds.has(deliveryId) : deliveryId === repeatOf
    this.check(isRight, () => `H6: ${name} has the id ${deliveryId}, and repeats ${repeatOf ?? 'nothing'}`)
    this.check(isRepeat || repeatOf === undefined, () => `H6: ${name} is not marked as a repeat`)
    this.#deliveryIds.add(deliveryId)
    for (const task of this.tasks.values()) {
      if (task.repeatOf === deliveryId && !taskIds.includes(task.id)) task.repeatOf = undefined
    }
  }

  /** Records that a turn has failed: the agent may have read its message. */
  fail(message: Message): void {
    message.isOpen = false
    for (const id of message.taskIds) this.#task(id).repeatOf = message.deliveryId
  }

  /** Records that a message was accepted, even after its end. */
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

  /** Records a wait, which is over at once if enough tasks have ended. It claims only results that were not accepted. */
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

  /** Records the tasks that a wait returned; none if it was aborted. */
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

  transfer(id: string, heir: string): void {
    const task = this.#task(id)
    if (!task.isAccepted) task.owner = heir
  }

  // Queries

  /** The tasks that are owed to an owner and not leased, in the order in which they ended. */
  owed(owner: string): string[] {
    return [...this.tasks.values()]
      .filter((task) => task.owner === owner && this.isOwing(task) && !this.isLeased(task.id))
      .sort((a, b) => a.endedAs - b.endedAs)
      .map((task) => task.id)
  }

  /** Whether an open message carries it, or a pending wait claims it. */
  isLeased(id: string): boolean {
    return this.isAwaited(id) || this.messages.some((message) => message.isOpen && message.taskIds.includes(id))
  }

  /** The names of the open exclusive messages of an owner; there must be one at most. */
  exclusives(owner: string): string[] {
    return this.messages
      .filter((message) => message.isOpen && message.isExclusive && message.owner === owner)
      .map((message) => message.name)
  }

  running(): string[] {
    return [...this.tasks.values()].filter((task) => task.state === 'running').map((task) => task.id)
  }

  /** Whether its result is owed or leased. */
  isOwing(task: TaskAccount): boolean {
    const owes = task.state === 'cancelled' ? this.#notifyCancelled : task.state !== 'running'
    return owes && !task.isAccepted && !task.isDropped
  }

  /** Whether it is owed, and no message or wait holds it. */
  isOwed(id: string): boolean {
    return this.isOwing(this.#task(id)) && !this.isLeased(id)
  }

  isAccepted(id: string): boolean {
    return this.tasks.get(id)?.isAccepted === true
  }

  isAwaited(id: string): boolean {
    return this.waits.some((wait) => wait.isPending && wait.claimed.has(id))
  }

  // Violations

  check(isRight: boolean, describe: () => string): void {
    if (!isRight) this.#violations.push(describe())
  }

  /** Checks, when nothing is going on, that messages and waits have ended at their deadlines. */
  checkOver(now: number): void {
    for (const { name, isOpen, deadline = Infinity } of this.messages) {
      this.check(!isOpen || now <= deadline, () => `A6: ${name} did not expire at ${deadline}`)
    }
    for (const { isPending, whenOver, deadline = Infinity } of this.waits) {
      this.check(!isPending || (now <= deadline && whenOver() === undefined), () => 'A6: a wait did not end')
    }
  }

  /** @throws the first violation, and the schedule */
  conclude(schedule: string): void {
    const [first] = this.#violations
    if (first !== undefined) throw new Error(`${first}\n${schedule}`)
  }

  /** The oldest of these results, as many as fit into a message. */
  #fitting(taskIds: readonly string[]): readonly string[] {
    if (!this.isLong) return taskIds
    const long = taskIds.filter((id) => this.#task(id).state === 'completed')
    const first = long[LONG_RESULTS]
    return first === undefined ? taskIds : taskIds.slice(0, taskIds.indexOf(first))
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
