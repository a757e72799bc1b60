/** Assembles the state of the server from the events of the stream. */
import type {
  ChangesEvent,
  HealthPoint,
  Hello,
  HostRow,
  MachineCounts,
  OwnerDelivery,
  PageInstance,
  PageTask,
  ReadyEvent,
  TasksEvent,
} from '../../wire.js'
import type { StreamEvent } from './stream-parser.js'
import { createTaskList, type TaskList } from './task-list.js'

/** Everything that the page knows at one moment. */
export interface Known {
  readonly hello?: Hello
  readonly tasks: TaskList
  readonly owners: readonly OwnerDelivery[]
  readonly ownersLeftOut: number
  readonly host: readonly HostRow[]
  readonly instances: readonly PageInstance[]
  readonly machines: MachineCounts
  readonly health: readonly HealthPoint[]
}

export interface Feed {
  known(): Known
  take(event: StreamEvent): FeedStep
}

export interface FeedStep {
  /** The server's clock, if the event contains it. */
  readonly now?: number
  readonly isWhole: boolean
  readonly hasChanged: boolean
}

/** One hour, in points of ten seconds. */
const MAX_POINTS = 360

const NOTHING = { owners: [], ownersLeftOut: 0, host: [], instances: [], machines: {}, health: [] }

export function createFeed(): Feed {
  let known: Known = { ...NOTHING, tasks: createTaskList() }
  let arriving: PageTask[] = []
  let isSnapshot = false

  const onHello = (hello: Hello): FeedStep => {
    known = { ...known, hello }
    isSnapshot = !hello.resumed
    arriving = []
    return { now: hello.now, isWhole: false, hasChanged: false }
  }

  const onReady = (ready: ReadyEvent): FeedStep => {
    // Many changes also arrive in several pieces and end with `ready`, but only a snapshot replaces all tasks.
    const tasks = isSnapshot ? createTaskList(arriving) : known.tasks
    isSnapshot = false
    arriving = []
    known = { ...known, ...ready, tasks }
    return { isWhole: true, hasChanged: true }
  }

  const onChanges = ({ now, tasks, removed, owners, removedOwners, health, ...rest }: ChangesEvent): FeedStep => {
    if (tasks) known.tasks.put(tasks)
    if (removed) known.tasks.remove(removed)
    known = {
      ...known,
      ...rest,
      ...((owners ?? removedOwners) && { owners: mergeOwners(known.owners, owners ?? [], removedOwners ?? []) }),
      ...(health && { health: mergePoints(known.health, health) }),
    }
    return { now, isWhole: false, hasChanged: true }
  }

  return {
    known: () => known,
    take: ({ event, data }) => {
      switch (event) {
        case 'hello':
          return onHello(JSON.parse(data) as Hello)
        case 'tasks':
          arriving.push(...(JSON.parse(data) as TasksEvent).tasks)
          return { isWhole: false, hasChanged: false }
        case 'ready':
          return onReady(JSON.parse(data) as ReadyEvent)
        case 'changes':
          return onChanges(JSON.parse(data) as ChangesEvent)
        default:
          return { isWhole: false, hasChanged: false }
      }
    },
  }
}

function mergeOwners(
  before: readonly OwnerDelivery[],
  changed: readonly OwnerDelivery[],
  removed: readonly string[],
): readonly OwnerDelivery[] {
  const byOwner = new Map(before.map((one) => [one.owner, one]))
  for (const one of changed) byOwner.set(one.owner, one)
  for (const owner of removed) byOwner.delete(owner)
  return [...byOwner.values()]
}

function mergePoints(before: readonly HealthPoint[], changed: readonly HealthPoint[]): readonly HealthPoint[] {
  const byTime = new Map(before.map((point) => [point.at, point]))
  for (const point of changed) byTime.set(point.at, point)
  return [...byTime.values()].sort((a, b) => a.at - b.at).slice(-MAX_POINTS)
}
