/**
 * Tasks of HTTP sessions of an earlier server process. The ids of these sessions are no longer valid, so the clients come back with new sessions.
 *
 * A client with a token receives all tasks of its earlier sessions in the next session that it opens. An anonymous client receives the tasks of an
 * earlier session when it names one of the tasks by its full id, which cannot be guessed. An earlier session that no client asks for ends after the idle
 * time, as any idle session does.
 */
import { clearLongTimeout, setLongTimeout } from '../system/clock.js'
import type { Backend } from './backend.js'
import { ANONYMOUS, STDIO_OWNER, type Caller } from './callers.js'

export interface LeftSessions {
  /** Gives the tasks of the client's earlier sessions to a new owner. Does nothing for a client without a token. */
  handOver(client: Caller, owner: string): void
  /** Does the same for the earlier sessions of the named tasks, if these sessions belonged to this client. */
  handOverNamed(client: Caller, taskIds: readonly string[], owner: string): void
  close(): void
}

/**
 * Finds the sessions of an earlier process.
 * @param end ends a session: cancels its tasks and drops its results
 */
export function createLeftSessions(backend: Backend, end: (owner: string) => void, idleMs: number): LeftSessions {
  const { manager, session, clock, log } = backend
  /** The owners of the earlier sessions, each with the owner of its client. */
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
        log('warn', `dropped the results of ${length} task(s) of an earlier session: no client asked for them in time`)
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

/** Tasks over stdio count, too: their only client ended with its process. */
const isSession = (owner: string): boolean => SESSION.test(owner) || owner === STDIO_OWNER

const clientOf = (owner: string): string => SESSION.exec(owner)?.[1] ?? ANONYMOUS.owner
