/** One turn at a time, whoever starts it: the user, or a background task that has ended. */
import { BehaviorSubject, distinctUntilChanged, map } from 'rxjs'

/** Who starts a turn. */
export type Starter = 'user' | 'tasks'

/** What happened, in order. */
export interface TurnEvent {
  readonly type: 'began' | 'ended' | 'failed'
  readonly from: Starter
  /** What was said to the agent. */
  readonly text: string
  /** What it said; present when the turn has ended well. */
  readonly answer?: string
}

/**
 * @param respond lets the agent answer; it rejects when the model could not be told
 */
export function createTurns(respond: (text: string, signal: AbortSignal | undefined) => Promise<string>) {
  const transcript: TurnEvent[] = []
  const waiting$ = new BehaviorSubject(0)
  let last: Promise<void> = Promise.resolve()
  return {
    transcript: transcript as readonly TurnEvent[],
    /** Whether a turn goes on or waits; the auto-trigger brings results when none does. */
    isBusy$: waiting$.pipe(
      map((count) => count > 0),
      distinctUntilChanged(),
    ),
    /** Takes a turn after those that wait already. Resolves with the answer, rejects when there was none. */
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

/** An agent with background tasks, as a user meets it. */
export interface ExampleAgent {
  /** Says something to the agent. */
  readonly say: (text: string) => Promise<string>
  readonly transcript: readonly TurnEvent[]
  /** Resolves when every task has ended and its result was told. */
  readonly onIdle: () => Promise<void>
  readonly dispose: () => Promise<void>
}
