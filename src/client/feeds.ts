/**
 * The tasks that this client watches. Each has one subscription for all of its watchers. The subscription lasts until the task has ended,
 * has expired on the server, or has lost its last watcher (S7 and S9 in docs/guarantees.md).
 *
 * The server subscribes the submitter to its task at once. The first events are buffered for UNWATCHED_MS, so that a watch that starts right
 * after `submit` gets them.
 */
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../system/clock.js'
import type { AgentTasksError } from '../errors.js'
import type { SubscribeAckMessage } from '../protocol/client-messages.js'
import type { Task } from '../protocol/command-tasks.js'
import { ConnectionError, TaskExpiredError, TaskServerError } from './client-errors.js'
import type { Session, TaskMessage } from './session.js'

/** How long the events of a submitted task are buffered without a watcher, in ms. */
const UNWATCHED_MS = 1000

/** The delay before a subscription is retried, in ms. */
const RETRY_MS = 1000

export interface Watcher {
  readonly onEvent: (event: TaskMessage) => void
  readonly onSnapshot: ((task: Task) => void) | undefined
  readonly onError: (error: AgentTasksError) => void
}

interface Feed {
  readonly taskId: string
  readonly watchers: Set<Watcher>
  /** The events of a submitted task before its first watcher. Undefined when the task was not submitted here, or has had a watcher. */
  early: TaskMessage[] | undefined
  /** Whether the server has answered that it has the task. */
  isKnown: boolean
  isOver: boolean
  timer: LongTimer | undefined
}

export interface FeedsOptions {
  readonly clock: Clock
  readonly session: () => Session
  readonly maxBuffered: number
}

export function createFeeds({ clock, session, maxBuffered }: FeedsOptions) {
  const feeds = new Map<string, Feed>()

  function openFeed(taskId: string): Feed {
    const feed: Feed = {
      taskId,
      watchers: new Set(),
      early: undefined,
      isKnown: false,
      isOver: false,
      timer: undefined,
    }
    feeds.set(taskId, feed)
    return feed
  }

  function isOpen(feed: Feed): boolean {
    return feeds.get(feed.taskId) === feed
  }

  function closeFeed(feed: Feed): void {
    clearLongTimeout(clock, feed.timer)
    if (isOpen(feed)) feeds.delete(feed.taskId)
  }

  function failFeed(feed: Feed, error: AgentTasksError): void {
    closeFeed(feed)
    for (const watcher of [...feed.watchers]) watcher.onError(error)
  }

  function subscribe(feed: Feed): void {
    // `resume` subscribes to all tasks when the next connection is ready.
    if (!session().isReady) {
      session().wake()
      return
    }
    session().request({
      message: { type: 'subscribe_task', taskId: feed.taskId },
      answer: 'subscribe_ack',
      isRepeatable: false,
      onAnswer: (ack) => acknowledge(feed, ack),
      onError: (error) => refuse(feed, error),
    })
  }

  function acknowledge(feed: Feed, ack: SubscribeAckMessage): void {
    const { task } = ack
    if (task === undefined || task === null) {
      const { code = 'TASK_NOT_FOUND', error = `Task not found: ${feed.taskId}` } = ack
      const isGone = task === null && feed.isKnown
      failFeed(feed, isGone ? new TaskExpiredError(feed.taskId) : new TaskServerError(code, error))
      return
    }
    feed.isKnown = true
    for (const watcher of [...feed.watchers]) watcher.onSnapshot?.(task)
  }

  function refuse(feed: Feed, error: AgentTasksError): void {
    if (!isOpen(feed) || feed.isOver) return
    // The connection was lost: `resume` or `fail` decides about this task next.
    if (error instanceof ConnectionError && error.code === 'CONNECTION_LOST') return
    const isTransient = error.code === 'RATE_LIMITED' || error.code === 'REQUEST_TIMEOUT'
    if (!isTransient) {
      failFeed(feed, error)
      return
    }
    clearLongTimeout(clock, feed.timer)
    feed.timer = setLongTimeout(clock, () => subscribe(feed), RETRY_MS)
  }

  function unsubscribe({ taskId }: Feed): void {
    if (!session().isReady) return
    const ignore = (): void => undefined
    session().request({
      message: { type: 'unsubscribe_task', taskId },
      answer: 'unsubscribe_ack',
      isRepeatable: false,
      onAnswer: ignore,
      onError: ignore,
    })
  }

  function abandon(feed: Feed): void {
    closeFeed(feed)
    if (!feed.isOver) unsubscribe(feed)
  }

  return {
    /** Returns the id of a watched or buffered task that has not ended, if there is one. */
    watchedTask(): string | undefined {
      for (const { taskId, isOver } of feeds.values()) if (!isOver) return taskId
      return undefined
    },
    /** Buffers the events of a task that was submitted on this connection. The server has subscribed the connection to it. */
    adopt(taskId: string): void {
      const feed = openFeed(taskId)
      feed.isKnown = true
      feed.early = []
      feed.timer = setLongTimeout(clock, () => abandon(feed), UNWATCHED_MS)
    },
    /** @returns a function that removes the watcher */
    watch(taskId: string, watcher: Watcher): () => void {
      const known = feeds.get(taskId)
      const feed = known ?? openFeed(taskId)
      feed.watchers.add(watcher)
      const { early } = feed
      if (early !== undefined) {
        feed.early = undefined
        clearLongTimeout(clock, feed.timer)
        if (feed.isOver) closeFeed(feed)
        for (const event of early) watcher.onEvent(event)
      }
      // A task that is already subscribed is subscribed again only for the answer, which has the snapshot. The second subscription has no other effect.
      if (known === undefined || (watcher.onSnapshot !== undefined && !feed.isOver)) subscribe(feed)
      return () => {
        feed.watchers.delete(watcher)
        if (feed.watchers.size === 0 && isOpen(feed)) abandon(feed)
      }
    },
    push(event: TaskMessage): void {
      const feed = feeds.get(event.taskId)
      if (feed === undefined || feed.isOver) return
      if (event.type === 'task_complete') feed.isOver = true
      if (feed.early !== undefined) {
        if (feed.early.length >= maxBuffered && !feed.isOver) feed.early.shift()
        feed.early.push(event)
        return
      }
      if (feed.isOver) closeFeed(feed)
      for (const watcher of [...feed.watchers]) watcher.onEvent(event)
    },
    /** Subscribes to all open tasks on a new connection. */
    resume(): void {
      for (const feed of [...feeds.values()]) if (!feed.isOver) subscribe(feed)
    },
    /** Fails the watchers of tasks that have not ended. Ended tasks keep their buffered events, which a watcher can still read. */
    fail(error: AgentTasksError): void {
      for (const feed of [...feeds.values()]) if (!feed.isOver) failFeed(feed, error)
    },
    close(error: AgentTasksError): void {
      for (const feed of [...feeds.values()]) failFeed(feed, error)
    },
  }
}
