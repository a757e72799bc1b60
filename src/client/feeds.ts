/**
 * The tasks that are being watched: each is subscribed to once on every connection, however many watch it, until it is
 * over, forgotten by the server, or left by the last who watched (S7, S9).
 *
 * A task that was just submitted is subscribed already: its events are kept for a moment, so that a watch that begins
 * soon after misses none.
 */
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import type { AgentTasksError } from '../errors.js'
import type { SubscribeAckMessage } from '../protocol/client-messages.js'
import type { Task } from '../protocol/command-tasks.js'
import { ConnectionError, TaskExpiredError, TaskServerError } from './client-errors.js'
import type { Session, TaskEvent } from './session.js'

/** How long the events of a submitted task that nobody watches are kept, in ms. */
const UNWATCHED_MS = 1000

/** How long to wait when the server asks for patience, in ms. */
const PATIENCE_MS = 1000

/** Who watches a task. */
export interface Watcher {
  readonly onEvent: (event: TaskEvent) => void
  readonly onSnapshot: ((task: Task) => void) | undefined
  readonly onError: (error: AgentTasksError) => void
}

interface Feed {
  readonly taskId: string
  readonly watchers: Set<Watcher>
  /** What came before anybody watched; only of a task that was just submitted. */
  early: TaskEvent[] | undefined
  /** The server knew it. */
  isKnown: boolean
  isOver: boolean
  timer: LongTimer | undefined
}

export interface FeedsOptions {
  readonly clock: Clock
  readonly session: () => Session
  /** How many early events of one task are kept. */
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
    // Without a connection there is nothing to do: every new one subscribes to all.
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

  /** Nobody watches what is over or closed any more, so there is nobody to tell of an answer that came too late. */
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
    // A lost connection is followed by another, or by the end of all feeds.
    if (error instanceof ConnectionError && error.code === 'CONNECTION_LOST') return
    const isTransient = error.code === 'RATE_LIMITED' || error.code === 'REQUEST_TIMEOUT'
    if (!isTransient) {
      failFeed(feed, error)
      return
    }
    clearLongTimeout(clock, feed.timer)
    feed.timer = setLongTimeout(clock, () => subscribe(feed), PATIENCE_MS)
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

  /** Nobody watches: the server need not tell of it. */
  function abandon(feed: Feed): void {
    closeFeed(feed)
    if (!feed.isOver) unsubscribe(feed)
  }

  return {
    /** A task that is not over and is watched, or may be in a moment. */
    watchedTask(): string | undefined {
      for (const { taskId, isOver } of feeds.values()) if (!isOver) return taskId
      return undefined
    },
    /** A task was submitted on the present connection, which is subscribed to it. */
    adopt(taskId: string): void {
      const feed = openFeed(taskId)
      feed.isKnown = true
      feed.early = []
      feed.timer = setLongTimeout(clock, () => abandon(feed), UNWATCHED_MS)
    },
    /** @returns what ends the watch; it does nothing once the task is over */
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
      // The server answers every subscription with a snapshot, and subscribes only once.
      if (known === undefined || (watcher.onSnapshot !== undefined && !feed.isOver)) subscribe(feed)
      return () => {
        feed.watchers.delete(watcher)
        if (feed.watchers.size === 0 && isOpen(feed)) abandon(feed)
      }
    },
    tell(event: TaskEvent): void {
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
    /** There is a new connection. */
    resume(): void {
      for (const feed of [...feeds.values()]) if (!feed.isOver) subscribe(feed)
    },
    /** There will be no connection. What is over already can still be read. */
    fail(error: AgentTasksError): void {
      for (const feed of [...feeds.values()]) if (!feed.isOver) failFeed(feed, error)
    },
    /** Nobody will watch any more. */
    close(error: AgentTasksError): void {
      for (const feed of [...feeds.values()]) failFeed(feed, error)
    },
  }
}
