/** What happens in a race of questions, messages and repeats: the steps of its actors. */
import fc from 'fast-check'

/** A step of an actor. `nth` picks among the tasks of all lives, or the messages of the transcript. */
export type TalkStep =
  | { readonly do: 'launch' }
  /** Somebody sends the next message, answers the first open question, or cancels. */
  | { readonly do: 'send' | 'answer' | 'cancel'; readonly nth: number }
  /** The host asks for a message of its transcript once more. */
  | { readonly do: 'redeliver'; readonly nth: number }
  /** A turn that the host starts itself. */
  | { readonly do: 'turn'; readonly isAccepted: boolean }
  /** The agent calls a tool, whose result may carry what is owed. */
  | { readonly do: 'call' }

export interface TalkScript {
  /** How many runs a task may have in all. */
  readonly attempts: number
  /** How many questions a run asks. */
  readonly questions: number
  /** What the auto-trigger's turns do, the rest accept. */
  readonly turns: readonly ('accept' | 'refuse')[]
  readonly agent: readonly TalkStep[]
  readonly person: readonly TalkStep[]
}

const nth = fc.nat(1)
const step: fc.Arbitrary<TalkStep> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('send' as const), nth }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('answer' as const), nth }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), nth }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('redeliver' as const), nth }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('turn' as const), isAccepted: fc.boolean() }) },
  { weight: 2, arbitrary: fc.constant({ do: 'call' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'launch' as const }) },
)

/** Any script. */
export const talkScripts: fc.Arbitrary<TalkScript> = fc.record({
  attempts: fc.constantFrom(1, 2),
  questions: fc.constantFrom(1, 2),
  turns: fc.array(fc.constantFrom('accept' as const, 'refuse' as const), { maxLength: 2 }),
  agent: fc.array(step, { maxLength: 4 }).map((steps): TalkStep[] => [{ do: 'launch' }, ...steps]),
  person: fc.array(step, { maxLength: 4 }),
})
