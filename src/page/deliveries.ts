/** How the deliveries to each owner stand, and the messages that carried results. */
import { runOfOwner } from '../../machines/families.js'
import type { TaskTransition } from '../../machines/records.js'
import type { DeliveryStanding } from '../async-tasks/delivery-standings.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { preview } from '../preview.js'
import type { AsyncEntry } from './async-entry.js'
import { rowText } from './texts.js'
import { Versioned, type Versions } from './versioned.js'
import type { DeliveryMessage, OwnerDelivery } from './wire.js'

/** How many owners, messages of each, tasks of a message, and waiting tasks are shown. */
const MAX_OWNERS = 1000
const MAX_MESSAGES = 50
const MAX_TASKS = 50
const MAX_WAITING = 200

interface Message {
  readonly deliveryId: string
  readonly at: number
  endedAt?: number
  outcome: DeliveryMessage['outcome']
  readonly tasks: string[]
}

class Owner {
  readonly name: string
  delivered = 0
  /** Newest last. */
  readonly messages = new Map<string, Message>()
  /** The tasks that are owed or leased. */
  readonly waiting = new Set<string>()

  constructor(name: string) {
    this.name = name
  }
}

export class Deliveries {
  readonly #manager: AsyncTaskManager
  readonly #owners: Versioned<Owner>
  readonly #stop: () => void

  /** @param onChange called when the deliveries of an owner stand otherwise */
  constructor(manager: AsyncTaskManager, versions: Versions, onChange: () => void) {
    this.#manager = manager
    this.#owners = new Versioned(versions, MAX_OWNERS)
    const { standings } = manager.registry
    for (const owner of standings.owners()) this.#touch(owner)
    const subscription = standings.changed$.subscribe((owner) => {
      this.#touch(owner)
      onChange()
    })
    this.#stop = () => subscription.unsubscribe()
  }

  stop(): void {
    this.#stop()
  }

  /** How many results are owed, in a message or not. */
  get owed(): number {
    const { ledger } = this.#manager.registry
    return ledger.countOf('owed') + ledger.countOf('leased')
  }

  all(): OwnerDelivery[] {
    return Array.from(this.#owners.values(), (owner) => this.#shown(owner))
  }

  /** What has changed since a version; undefined when that is not known any more. */
  since(
    version: number,
  ): { readonly owners: readonly OwnerDelivery[]; readonly removed: readonly string[] } | undefined {
    const difference = this.#owners.since(version)
    return difference && { owners: difference.changed.map((owner) => this.#shown(owner)), removed: difference.removed }
  }

  /** A task has changed; without a transition it was there before. */
  note(entry: AsyncEntry, transition: TaskTransition | undefined): void {
    const { key } = entry
    const { owner: name, delivery } = entry.record
    // Most changes of a task are none of its delivery.
    const isDelivery = transition === undefined || transition.kind === 'delivery' || transition.kind === 'owner'
    const owner = isDelivery ? this.#touch(name) : (this.#owners.get(name) ?? this.#touch(name))
    if (transition === undefined) {
      if (delivery === 'delivered') owner.delivered += 1
    } else if (transition.kind === 'owner') {
      this.#touch(transition.from).waiting.delete(key)
    } else if (transition.kind === 'delivery') this.#noteDelivery(owner, key, transition)
    if (delivery === 'owed' || delivery === 'leased') owner.waiting.add(key)
    else owner.waiting.delete(key)
  }

  /** The journal has forgotten a task. */
  forget(key: string, name: string): void {
    const owner = this.#owners.get(name)
    if (owner?.waiting.delete(key) === true) this.#owners.touch(name)
  }

  #noteDelivery(owner: Owner, key: string, { from, to, at, deliveryId }: TaskTransition & { kind: 'delivery' }): void {
    if (to === 'delivered') owner.delivered += 1
    if (deliveryId === undefined) return
    let message = owner.messages.get(deliveryId)
    if (message === undefined) {
      message = { deliveryId, at, outcome: 'open', tasks: [] }
      owner.messages.set(deliveryId, message)
      for (const oldest of owner.messages.keys()) {
        if (owner.messages.size <= MAX_MESSAGES) break
        owner.messages.delete(oldest)
      }
    }
    if (message.tasks.length < MAX_TASKS && !message.tasks.includes(key)) message.tasks.push(key)
    if (to === 'leased') return
    message.outcome = to === 'delivered' ? 'accepted' : 'released'
    if (from !== 'delivered') message.endedAt = at
  }

  #touch(name: string): Owner {
    const known = this.#owners.get(name)
    if (known !== undefined) {
      this.#owners.touch(name)
      return known
    }
    const owner = new Owner(name)
    this.#owners.add(name, owner)
    if (this.#owners.size > MAX_OWNERS) this.#removeIdle(name)
    return owner
  }

  /** Owners come and go with runs: the first one goes to whom nothing is owed. */
  #removeIdle(except: string): void {
    for (const { name, waiting } of this.#owners.values()) {
      if (name === except || waiting.size > 0 || this.#manager.registry.standings.of(name).length > 0) continue
      this.#owners.remove(name)
      return
    }
  }

  #shown({ name, delivered, messages, waiting }: Owner): OwnerDelivery {
    const { registry } = this.#manager
    const { ledger, standings, pushSubscribers } = registry
    const [owed, leased] = [ledger.countOf('owed', name), ledger.countOf('leased', name)]
    const standing = standings.of(name)[0]
    const state = stateOf(standing)
    return {
      owner: name,
      ...{ owed, leased, delivered, state },
      ...(standing?.until !== undefined && { until: standing.until }),
      reason: reasonOf({
        ...{ name, owed, leased, state, standing },
        isPushed: pushSubscribers.has(name),
        isDelivering: ledger.isDelivering(name),
        runId: runOfOwner(name),
      }),
      messages: Array.from(messages.values(), shownMessage).reverse(),
      waiting: [...waiting].slice(0, MAX_WAITING),
    }
  }
}

const shownMessage = ({ deliveryId, at, endedAt, outcome, tasks }: Message): DeliveryMessage => ({
  deliveryId,
  at,
  ...(endedAt !== undefined && { endedAt }),
  outcome,
  tasks: [...tasks],
})

function stateOf(standing: DeliveryStanding | undefined): OwnerDelivery['state'] {
  const path = standing?.path ?? 'detached'
  if (path === 'dormant') return 'idle'
  if (path === 'backingOff') return 'backing-off'
  if (path.startsWith('delivering')) return 'delivering'
  if (path === 'detached') return 'none'
  return path === 'holding.polling' || path === 'holding.waiting' ? 'busy' : 'gathering'
}

interface Reasons {
  readonly name: string
  readonly owed: number
  readonly leased: number
  readonly state: OwnerDelivery['state']
  readonly standing: DeliveryStanding | undefined
  readonly isPushed: boolean
  readonly isDelivering: boolean
  /** The run that is the owner. */
  readonly runId: string | undefined
}

/** Why a result still waits, and what to do. */
function reasonOf({ name, owed, leased, state, standing, isPushed, isDelivering, runId }: Reasons): string {
  if (owed + leased === 0) return 'Nothing is owed.'
  switch (state) {
    case 'none':
      if (runId !== undefined) {
        return `The run of task ${preview(rowText(runId))} owns it, and can take it (children, or its tools). When that task ends, its owner gets what is left.`
      }
      return leased > 0 && owed === 0
        ? 'A message with them is on its way: its outcome acknowledges them or owes them again.'
        : isPushed
          ? 'Its host delivers by itself.'
          : `No auto-trigger is subscribed for ${preview(rowText(name))}: the next beforeTurn, check_async_tasks or wait_for_async_tasks of this owner carries them. Set isAgentBusy and triggerAgentTurn to wake its agent.`
    case 'idle':
      return 'What is owed is in another message.'
    case 'gathering':
      return 'It waits a moment for further tasks to end, and sends one message.'
    case 'busy':
      if (isDelivering) return 'Another message to this agent is in flight: the next goes out when that has ended.'
      return standing?.path === 'holding.waiting'
        ? 'The agent is busy. The message goes out when it says that it is idle.'
        : 'The agent is busy (isAgentBusy). It is asked again and again; notifyIdle() sends the message at once.'
    case 'backing-off':
      return `The agent has refused ${standing?.failures ?? 1} message(s) in a row: triggerAgentTurn rejected, or took too long. It is tried again after a while; notifyIdle() does it at once.`
    case 'delivering':
      return 'A message is in flight: triggerAgentTurn has not settled.'
  }
}
