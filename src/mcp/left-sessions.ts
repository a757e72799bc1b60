/**
 * Tasks of HTTP sessions of an earlier server process: their session ids mean nothing any more, so their clients come back in new sessions.
 *
 * A client with a token gets all that its sessions left, in the next session that it opens. A client without one cannot be told from others: it
 * gets what one of its sessions left when it names a task of it by its whole id, which nobody can guess. What nobody has asked for after
 * the idle time of a session ends as an idle session does.
 */
import { clearLongTimeout, setLongTimeout } from '../clock.js'
import type { Backend } from './backend.js'
import { ANONYMOUS, STDIO_OWNER, type Caller } from './callers.js'

export interface LeftSessions {
  /** Hands over to a new owner what the sessions of the client left; nothing to a client without a token. */
  handOver(client: Caller, owner: string): void
  /** Hands over the sessions that the tasks belong to, if the client had them. */
  handOverNamed(client: Caller, taskIds: readonly string[], owner: string): void
  close(): void
}

/** The owner of a session's tasks. It tells the next process whose session it was. */
export function sessionOwner(id: string, { owner, isAnonymous }: Caller): string {
  return isAnonymous ? `session-${id}` : `${owner}/session-${id}`
}

/** Whether this is the owner of a session of a client with a token. */
export const isSessionOf = (sessionOwner: string, clientOwner: string): boolean =>
  sessionOwner.startsWith(`${clientOwner}/session-`)

/**
 * Finds the sessions that an earlier process left.
 * @param end ends a session: its tasks are cancelled, and its results dropped
 */
export function createLeftSessions(backend: Backend, end: (owner: string) => void, idleMs: number): LeftSessions {
  const { manager, session, clock, log } = backend
  /** The owners that are left, each with the client that had it. */
  const left = new Map(
    session === undefined
      ? []
      : [...manager.getAllTasks(), ...manager.schedules()].flatMap(({ owner }) =>
          isSession(owner) ? [[owner, clientOf(owner)]] : [],
        ),
  )
  const give = (from: string, to: string): void => {
    left.delete(from)
    manager.releaseOwner(from, { to })
  }
  const endLeft = (): void => {
    for (const owner of left.keys()) {
      if (manager.getActiveTasks(owner).length > 0) continue
      left.delete(owner)
      const { length } = manager.getPendingNotifications(owner)
      end(owner)
      if (length > 0) {
        log('warn', `the results of ${length} task(s) of an earlier session were dropped: nobody asked for them`)
      }
    }
    arm()
  }
  let timer: ReturnType<typeof setLongTimeout> | undefined
  const arm = (): void => {
    timer = left.size === 0 ? undefined : setLongTimeout(clock, endLeft, idleMs)
  }
  arm()
  return {
    handOver: (client, owner) => {
      if (client.isAnonymous) return
      for (const [from, had] of left) if (had === client.owner) give(from, owner)
    },
    handOverNamed: (client, taskIds, owner) => {
      for (const id of taskIds) {
        const from = manager.getTask(id)?.owner ?? ''
        if (left.get(from) === client.owner) give(from, owner)
      }
    },
    close: () => clearLongTimeout(clock, timer),
  }
}

const SESSION = /^(?:(client-[0-9a-f]{16})\/)?session-/

/** Over stdio there is one client, whose process ended. */
const isSession = (owner: string): boolean => SESSION.test(owner) || owner === STDIO_OWNER

const clientOf = (owner: string): string => SESSION.exec(owner)?.[1] ?? ANONYMOUS.owner
