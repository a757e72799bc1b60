/**
 * The watched tasks. Each has one subscription per connection, however many watchers it has, until it has ended, expired on the
 * server, or lost its last watcher (promises S7, S9).
 *
 * The server subscribes the submitter of a task at once. Its first events are buffered for a moment, so that a watch that starts
 * right after `submit` gets them.
 */
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
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
  /** The events before the first watcher; only of a task that was just submitted. */
  early: TaskMessage[] | undefined
  /** Whether the server had it. */
  isKnown: boolean
  isOver: boolean
  timer: LongTimer | undefined
}

export interface FeedsOptions {
  readonly clock: Clock
  readonly session: () => Session
  /** The most events that are buffered for a task. */
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
    // `resume` subscribes to all tasks on the next connection.
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
    // `resume` or `fail` follows.
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
    /** The id of a task that has not ended and is watched or buffered. */
    watchedTask(): string | undefined {
      for (const { taskId, isOver } of feeds.values()) if (!isOver) return taskId
      return undefined
    },
    /** Buffers the events of a task that was submitted on this connection, which is subscribed to it. */
    adopt(taskId: string): void {
      const feed = openFeed(taskId)
      feed.isKnown = true
      feed.early = []
      feed.timer = setLongTimeout(clock, () => abandon(feed), UNWATCHED_MS)
    },
    /** @returns an unsubscribe function */
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
      // A second subscription has no effect but its answer, which has the snapshot.
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
    /** Subscribes to all tasks on a new connection. */
    resume(): void {
      for (const feed of [...feeds.values()]) if (!feed.isOver) subscribe(feed)
    },
    /** Fails the tasks that have not ended. Buffered events of the others can still be read. */
    fail(error: AgentTasksError): void {
      for (const feed of [...feeds.values()]) if (!feed.isOver) failFeed(feed, error)
    },
    /** Fails all tasks. */
    close(error: AgentTasksError): void {
      for (const feed of [...feeds.values()]) failFeed(feed, error)
    },
  }
}
