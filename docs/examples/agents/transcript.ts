/** What the example agents have in common, and what they print: their turns. */
import type { Respond } from 'agent-tasks/parts'

/** One turn. */
export interface TurnEvent {
  readonly type: 'began' | 'ended' | 'failed'
  /** Who started it: the user, or a background task that has ended. */
  readonly from: 'user' | 'tasks'
  /** The message to the agent. */
  readonly text: string
  /** The answer; undefined when the turn failed. */
  readonly answer?: string
}

/** Writes the turns down. */
export function recorded(transcript: TurnEvent[], respond: Respond<string>): Respond<string> {
  return async (text, signal) => {
    const from = text.startsWith('This is a notification of background tasks.') ? 'tasks' : 'user'
    transcript.push({ type: 'began', from, text })
    try {
      const answer = await respond(text, signal)
      transcript.push({ type: 'ended', from, text, answer })
      return answer
    } catch (error) {
      transcript.push({ type: 'failed', from, text })
      throw error
    }
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
