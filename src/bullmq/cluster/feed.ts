/**
 * Reads the events of the cluster from one Redis stream. After an outage of Redis, a node continues after the last event that it has read. If the
 * stream was trimmed meanwhile, `onGap` is called.
 */
import type { Redis } from 'ioredis'
import { createBackoff } from '../backoff.js'
import { failureLog } from '../failure-log.js'

export interface FeedEntry {
  readonly type: 'event' | 'work' | 'cancel' | 'instance' | 'forgotten'
  readonly fields: Readonly<Record<string, string>>
}

export interface FeedOptions {
  /** A connection that only the feed uses, because its reads block. */
  readonly redis: Redis
  readonly stream: string
  /** Called with each entry. The next entry waits until the promise resolves. Must not reject. */
  readonly onEntry: (entry: FeedEntry) => Promise<void> | void
  /** Called when Redis has deleted entries before this node could read them, or has lost entries, so that their numbers go back. */
  readonly onGap: () => void
  readonly log: (line: string) => void
}

export interface Feed {
  /** Starts to read. Entries that already exist are skipped. */
  start(): Promise<void>
  close(): void
}

/** How long Redis waits for new entries in one read, in ms. */
const BLOCK_MS = 5000
const BATCH = 500
/** How long the feed waits after the first failed read, in ms. */
const RETRY_MS = 100

export function createFeed({ redis, stream, onEntry, onGap, log }: FeedOptions): Feed {
  let last = '0-0'
  let count: number | undefined
  const closing = new AbortController()
  const isClosed = (): boolean => closing.signal.aborted
  const logFailure = failureLog(log)
  const backoff = createBackoff(RETRY_MS)

  async function read(): Promise<void> {
    const found = await redis.xread('COUNT', BATCH, 'BLOCK', BLOCK_MS, 'STREAMS', stream, last)
    for (const [id, list] of found?.[0]?.[1] ?? []) {
      last = id
      const fields = fieldsOf(list)
      const number = Number(fields['n'])
      if (count !== undefined && number !== count + 1) onGap()
      count = number
      if (isClosed()) return
      await onEntry({ type: fields['t'] as FeedEntry['type'], fields })
    }
  }

  async function readAll(): Promise<void> {
    while (!isClosed()) {
      try {
        await read()
        backoff.reset()
      } catch (error) {
        if (isClosed()) return
        logFailure('feed', 'The feed of the cluster could not be read, and is read again', error)
        await backoff.wait()
      }
    }
  }

  return {
    start: async () => {
      const [newest] = await redis.xrevrange(stream, '+', '-', 'COUNT', 1)
      if (newest !== undefined) {
        last = newest[0]
        count = Number(fieldsOf(newest[1])['n'])
      }
      void readAll()
    },
    close: () => {
      closing.abort()
      // Without this call, a blocked read would never settle while Redis cannot be reached.
      redis.disconnect()
    },
  }
}

function fieldsOf(list: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = {}
  for (let at = 0; at + 1 < list.length; at += 2) fields[list[at] ?? ''] = list[at + 1] ?? ''
  return fields
}
