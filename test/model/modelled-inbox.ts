/** The model of the messages to a task (F7): each is taken at most once, in order, by the present run. */

/** What a run got when it took a message. */
export interface ModelTake {
  got: string
}

export interface ModelledInbox {
  /** The run that may take messages; undefined once its task has ended. */
  reader: object | undefined
  /** What was accepted, and not taken. */
  readonly waiting: string[]
  /** What waits for a message. */
  takers: ModelTake[]
}

/** The messages are for this run from now on; without one, there are no more. */
export function setReader(inbox: ModelledInbox, reader: object | undefined): void {
  for (const taker of inbox.takers) taker.got = 'over'
  inbox.takers = []
  inbox.reader = reader
  if (reader === undefined) inbox.waiting.length = 0
}

export function accept(inbox: ModelledInbox, message: string): void {
  const taker = inbox.takers.shift()
  if (taker === undefined) inbox.waiting.push(message)
  else taker.got = message
}

/** The run takes the next message, or waits for it. */
export function take(inbox: ModelledInbox | undefined, reader: object): ModelTake {
  if (inbox?.reader !== reader) return { got: 'over' }
  const taken = { got: inbox.waiting.shift() ?? 'nothing yet' }
  if (taken.got === 'nothing yet') inbox.takers.push(taken)
  return taken
}
