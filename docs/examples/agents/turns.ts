/** A queue of turns, started by the user or by a background task that has ended. */
import { BehaviorSubject, distinctUntilChanged, map } from 'rxjs'

/** Who starts a turn. */
export type Starter = 'user' | 'tasks'

/** One turn. */
export interface TurnEvent {
  readonly type: 'began' | 'ended' | 'failed'
  readonly from: Starter
  /** The message to the agent. */
  readonly text: string
  /** The answer; undefined when the turn failed. */
  readonly answer?: string
}

/** @param respond returns the agent's answer; it rejects when the model call failed */
export function createTurns(respond: (text: string, signal: AbortSignal | undefined) => Promise<string>) {
  const transcript: TurnEvent[] = []
  const waiting$ = new BehaviorSubject(0)
  let last: Promise<void> = Promise.resolve()
  return {
    transcript: transcript as readonly TurnEvent[],
    /** Whether a turn is running or waiting; the auto-trigger delivers results when none is. */
    isBusy$: waiting$.pipe(
      map((count) => count > 0),
      distinctUntilChanged(),
    ),
    /** Queues a turn. Resolves with the answer; rejects when the turn failed. */
    take: (from: Starter, text: string, signal?: AbortSignal): Promise<string> => {
      waiting$.next(waiting$.value + 1)
      const turn = last.then(async () => {
        transcript.push({ type: 'began', from, text })
        try {
          const answer = await respond(text, signal)
          transcript.push({ type: 'ended', from, text, answer })
          return answer
        } catch (error) {
          transcript.push({ type: 'failed', from, text })
          throw error
        }
      })
      const isOver = () => waiting$.next(waiting$.value - 1)
      last = turn.then(isOver, isOver)
      return turn
    },
  }
}

/** An agent with background tasks. */
export interface ExampleAgent {
  /** Sends a message to the agent. */
  readonly say: (text: string) => Promise<string>
  readonly transcript: readonly TurnEvent[]
  /** Resolves when every task has ended and its result was delivered. */
  readonly onIdle: () => Promise<void>
  readonly dispose: () => Promise<void>
}
