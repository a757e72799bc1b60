/** What a host does with one of its conversations. */
import type { AsyncTaskInfo } from '../../../machines/records.js'
import type { TurnDelivery } from '../../features/delivery/auto-trigger.js'
import type { AgentTools, OptionalTools } from '../../tools/tool-list.js'
import type { TurnFields } from '../../store/store.js'
import type { SlashCommand } from '../commands/command.js'
import type { LaunchArguments } from '../launch.js'
import type { OutputOf, Subagents } from '../subagent-outputs.js'
import type { TaskHandle } from '../task-handle.js'

/** One turn of the agent of a conversation. */
export interface ConversationTurn {
  /** The conversation that takes the turn. */
  readonly conversation: Conversation
  /** The message for the model: what a user has sent, or a message with results. */
  readonly text: string
  /**
   * With `keepTurns`: the messages of the kept turns, and `{ role: 'user', content: text }`. Otherwise empty. Their type is that of your model library.
   */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- model libraries have types of their own for the same JSON
  readonly messages: any[]
  /** Aborts when the turn is cancelled, or when the conversation is closed. */
  readonly signal: AbortSignal
  /** Present if the message contains results. */
  readonly delivery?: TurnDelivery
  /**
   * The ids of the deliveries in this turn so far (`AgentTurns.deliveryIds`). With a store, write them to your transcript together with the messages of
   * the turn, so that `wasDelivered` can answer for them.
   */
  readonly deliveryIds: readonly string[]
  /**
   * Suspends the turn, for example because a person has to approve a tool call (`AgentTurns.suspend`). Call it before `respond` resolves. The turn goes
   * on with `resume` of the conversation, or ends with `abandon`.
   */
  readonly suspend: () => void
}

/**
 * Runs one turn: sends its text to the model and returns the answer. If the promise resolves, the results in the message and those that tool calls have
 * returned in the turn count as delivered. If it rejects, they are delivered again.
 *
 * With a store that keeps turns (`keepTurns`), the answer must be the array of the messages that the turn adds after its `messages`. The host stores them in one write with what the
 * turn has delivered. If that write is not done, for example because of a crash, the turn never was, and its message starts another one. If that launches
 * the same work, it gets the tasks that the lost turn has launched.
 */
export type RespondInConversation<Answer = unknown> = (turn: ConversationTurn) => Answer | PromiseLike<Answer>

/** Options of `send`. */
export interface SendOptions {
  /** Aborting this signal cancels the turn. A waiting turn is skipped. A running turn is aborted through its `signal`. */
  readonly signal?: AbortSignal
  /**
   * The id of the message, of your choice. Requires `keepTurns`. The message is stored before its turn, which begins also after a restart. If the
   * conversation has a message with this id, no second turn begins, and `send` returns what that of the first one adds.
   */
  readonly id?: string
  /** Called once when the message is stored, before its turn has ended. Requires `id`. */
  readonly onStored?: () => void
}

/** A turn that the store keeps. */
export interface KeptTurn extends TurnFields {
  /** The `id` that the caller of `send` has passed. */
  readonly messageId?: string
}

/** Options of `conversation`. */
export interface ConversationOptions<Answer = unknown> {
  /** Runs the turns of this conversation. Default: the option `respond` of the host. */
  readonly respond?: RespondInConversation<Answer>
}

/** A conversation of a host: its tasks, its turns, and the tools of its agent. Its id is the owner of its tasks. */
export interface Conversation<Known extends Subagents = Subagents, Answer = unknown> {
  /** The owner of its tasks. */
  readonly id: string
  /** Whether a turn runs or waits. */
  readonly isBusy: boolean
  /** The tools for the model. They see the tasks of this conversation, and no others. */
  readonly tools: AgentTools & Partial<OptionalTools>
  /** The slash commands for the person in this conversation. They show and change the tasks of this conversation, and no others. */
  readonly commands: readonly SlashCommand[]
  /**
   * Takes a turn with a message, after all turns that were requested earlier.
   * @returns what `respond` returns; with `keepTurns`, when that is stored
   * @throws the error that `respond` throws
   * @throws the reason of `signal` when it aborts before the turn begins
   * @throws AgentTasksError `OWN_TURN` inside a turn of the same conversation, which would wait for itself
   * @throws AgentTasksError `INPUT_LIMIT` when 1000 messages with an id wait
   * @throws INVALID_INPUT for an invalid text or option, without a function `respond`, for the id of a message with another text, or with
   * `keepTurns` for a text of more than 1 MiB of JSON
   * @throws CONVERSATION_CLOSED after `close`, also for a message that waits
   * @throws DISPOSED after `dispose` of the host: the message may be sent again to the next one
   */
  send(text: string, options?: SendOptions): Promise<Answer>
  /**
   * Starts a task of this conversation, as `launch` of the host does.
   * @throws INVALID_INPUT for an `owner` that is not this conversation, or a `parentId` that is no task of it
   */
  launch<Name extends keyof Known & string>(
    name: Name,
    goal: string,
    ...options: LaunchArguments<Known[Name]>
  ): TaskHandle<OutputOf<Known[Name]>>
  /**
   * Continues the suspended turn with `run` (`AgentTurns.resume`).
   * @throws INVALID_INPUT when no turn is suspended
   */
  resume(run: (signal: AbortSignal) => Answer | PromiseLike<Answer>): Promise<Answer>
  /** Ends the suspended turn as one that has failed (`AgentTurns.abandon`). Returns false when no turn is suspended. */
  abandon(reason?: unknown): boolean
  /**
   * Returns the messages of the kept turns (`keepTurns`), in their order.
   * @throws StoreError when they cannot be read
   */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as those of a turn
  messages(): Promise<any[]>
  /**
   * Returns the kept turns (`keepTurns`), in their order. A client that knows the `seq` of the last turn that it has seen can ask for the later ones, and
   * finds the answer to its message by the `messageId`.
   * @throws StoreError when they cannot be read
   */
  turns(): Promise<readonly KeptTurn[]>
  /** Returns the tasks of this conversation, and those that their runs have launched, in the order of their launch. */
  list(): readonly AsyncTaskInfo[]
  /** Resolves when no task of this conversation is queued, running, owed or leased (`AsyncTaskManager.onIdle`), and no turn runs or waits. */
  onIdle(): Promise<void>
  /**
   * Ends the conversation. Its waiting turns are rejected, and the running one is aborted. Its active tasks are cancelled, and its owed results are
   * dropped; with `to`, all of them are transferred to another conversation instead. Its kept turns are removed. Resolves when the running turn has ended.
   * @throws INVALID_INPUT for an invalid option
   * @throws DISPOSED with `keepTurns`, when the host is disposed before the removal is stored
   */
  close(options?: { readonly to?: string }): Promise<void>
}

/** What a list of conversations says of one. */
export interface ConversationInfo {
  readonly id: string
  /** Whether a turn runs or waits. */
  readonly isBusy: boolean
  /** How many of its tasks wait to start, run, and have results that are owed to it. */
  readonly queued: number
  readonly running: number
  readonly owed: number
}

/** Options of `conversations`. */
export interface ConversationQuery {
  /** Where the page begins: `next` of the page before. */
  readonly after?: string
  /** The maximum number of conversations in the page. Default 100. */
  readonly limit?: number
}

/** A page of conversations, in the order of their ids. */
export interface ConversationPage {
  readonly conversations: readonly ConversationInfo[]
  /** Where the next page begins: pass it as `after`. Missing on the last page. */
  readonly next?: string
}
