/**
 * Asks the user of a client of 2026-07-28 the questions of tasks. Such a client is not sent requests. Instead, the answer to its call asks for input
 * (`input_required`), and the client makes the call again with what its user has entered (MCP: multi round-trip requests).
 *
 * - Between the two rounds nothing waits: the task goes on in the background. What the next round needs is in the signed `requestState`.
 * - While a form is shown, no other answer carries its question, for at most `SHOWN_MS`. After that, or if the answer was not written out, the question is
 * owed again. So a client that never makes the second round leaves its question to the model.
 * - The first answer counts. If a form returns no valid answer, the question stays open, but the rounds of the same call do not ask it again.
 */
import { randomBytes } from 'node:crypto'
import {
  createRequestStateCodec,
  ProtocolError,
  ProtocolErrorCode,
  type InputRequests,
  type InputRequiredResult,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { AsyncTaskInfo, TaskQuestion } from '../../machines/records.js'
import type { TaskLease } from '../features/delivery/leases.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { QuestionAsker } from '../features/questions/question-askers.js'
import { elapsedMs } from '../system/clock.js'
import { lazily } from '../protocol/lazily.js'
import { formOf, isForm, readForm } from './question-forms.js'

/** The maximum number of forms in one answer. Further questions are asked in the next rounds. */
const MAX_FORMS = 10

/** The maximum number of rounds of a call that ask for input. The official client gives up after this number. */
const MAX_ROUNDS = 10

/** How long no other answer carries a question whose form is shown, in ms. */
const SHOWN_MS = 300_000

/** The maximum number of questions whose forms are shown. */
const MAX_SHOWN = 1000

/** How long a state is valid, in seconds. */
const STATE_SECONDS = 86_400

const STALE =
  'This call continues an earlier one that asked for input, but the server does not know that call any more: it was restarted, or a day has ' +
  'passed. Nothing was launched, and no question was answered. See the tasks and their questions with check_async_tasks.'

/** What the next round of a call has to know. The client gets it signed, and can read it. */
const stateSchema = lazily(() =>
  z.object({
    owner: z.string(),
    tool: z.string(),
    /** The questions that are asked: the ids of the task and of the question. */
    asked: z.array(z.tuple([z.string(), z.string()])),
    /** The keys of the questions whose forms returned no valid answer. */
    failed: z.array(z.string()),
    round: z.number(),
    /** When the answer was made, on the monotonic clock, in ms. */
    askedAt: z.number(),
  }),
)

type State = z.output<ReturnType<typeof stateSchema>>

/** A call of a tool, as this file sees it. */
interface FormCall {
  readonly context: ServerContext
  readonly owner: string
  readonly tool: string
  /** Called with a text for the model when the client has declined a form by itself. */
  readonly onUnread: (note: string) => void
}

export interface FormRound {
  /** The id of the task that the call waits for; undefined in the first round. */
  readonly rejoin: string | undefined
  /** Collects the questions that the wait of the call meets. */
  readonly asker: QuestionAsker
  /** Whether one of the collected questions is still open. */
  hasForms(): boolean
  /** The answer that asks the collected questions. Takes their leases at once, and resolves when the answer may be sent. */
  request(): Promise<InputRequiredResult>
  /** Ends the round. If the answer that asks for input was not written out, its forms are not shown. */
  end(isWritten: boolean): void
}

interface OpenWait {
  readonly taskIds: Set<string>
  readonly onGivenUp: (taskId: string) => void
}

/** A question that a call asks. Until the answer of the call is made, it has no lease and no timer. */
interface Shown {
  readonly taskId: string
  lease?: TaskLease | undefined
  timer?: unknown
}

interface Asked {
  readonly taskId: string
  readonly question: TaskQuestion
}

export class FormRounds {
  readonly #manager: AsyncTaskManager
  readonly #codec = createRequestStateCodec<State>({ key: randomBytes(32), ttlSeconds: STATE_SECONDS })
  /** The questions that calls ask, by their keys, the oldest first. */
  readonly #shown = new Map<string, Shown>()
  readonly #waits = new Set<OpenWait>()
  #isClosed = false

  constructor(manager: AsyncTaskManager) {
    this.#manager = manager
  }

  /**
   * Begins a round of a call. In a later round, the answers of the user are given to the tasks.
   * @returns a text for the model instead of a round when the state of the call is not valid any more
   * @throws PROTOCOL_ERROR -32602 for a state of another owner or tool
   */
  async begin(call: FormCall): Promise<FormRound | string> {
    const { context, owner, tool } = call
    const sent = context.mcpReq.requestState<string>()
    if (sent === undefined) return this.#round(call, { owner, tool, asked: [], failed: [], round: 0, askedAt: 0 })
    const state = await this.#codec.verify(sent, context).then(
      (signed) => stateSchema().parse(signed),
      () => undefined,
    )
    if (state === undefined) return STALE
    if (state.owner !== owner || state.tool !== tool) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'The requestState is of another call.')
    }
    const failed = state.asked.flatMap(([taskId, id]) =>
      this.#answer(call, state, taskId, id) ? [] : [keyOf(taskId, id)],
    )
    return this.#round(call, { ...state, failed: [...state.failed, ...failed] })
  }

  /** Ends what it keeps, and asks nothing any more. */
  close(): void {
    this.#isClosed = true
    for (const key of [...this.#shown.keys()]) this.#end(key, 'release')
  }

  #round({ context, owner, tool }: FormCall, { asked, failed, round, ...state }: State): FormRound {
    const { clock } = this.#manager.reads
    const isFailed = new Set(failed)
    const wanted = new Map<string, Asked & { readonly shown: Shown }>()
    let isRequested = false
    const open = () =>
      [...wanted].filter(([, { taskId, question }]) => this.#questionOf(taskId, question.id) !== undefined)
    /** @returns whether another call asks the question, so that the wait may go on */
    const ask = (taskId: string, question: TaskQuestion): boolean => {
      const key = keyOf(taskId, question.id)
      if (wanted.has(key) || round >= MAX_ROUNDS || isFailed.has(key) || !isForm(question)) return false
      if (this.#shown.has(key)) return true
      const shown = { taskId }
      this.#shown.set(key, shown)
      wanted.set(key, { taskId, question, shown })
      return false
    }
    return {
      rejoin: asked[0]?.[0],
      asker: {
        begin: (onGivenUp) => {
          const wait: OpenWait = { taskIds: new Set(), onGivenUp }
          this.#waits.add(wait)
          return {
            ask: ({ id, questions = [] }: AsyncTaskInfo) => {
              wait.taskIds.add(id)
              return questions.filter((question) => !ask(id, question)).length === 0
            },
            end: () => void this.#waits.delete(wait),
          }
        },
      },
      hasForms: () => !this.#isClosed && open().length > 0,
      request: async () => {
        const now = open().slice(0, MAX_FORMS)
        isRequested = true
        const asked = new Set(now.map(([key]) => key))
        for (const [key, { shown }] of wanted) if (!asked.has(key)) this.#end(key, 'release', shown)
        const leases = now.map(([key, each]) => this.#show(key, each, each.shown))
        // The question stays open if its lease cannot be stored.
        await Promise.allSettled(leases.map(async (lease) => lease?.stored))
        const next: State = {
          ...state,
          owner,
          tool,
          asked: now.map(([, { taskId, question }]) => [taskId, question.id]),
          failed: [...isFailed],
          round: round + 1,
          askedAt: elapsedMs(clock),
        }
        return {
          resultType: 'input_required',
          inputRequests: Object.fromEntries(now.map(([key, { question }]) => [key, formOf(question)])) as InputRequests,
          requestState: await this.#codec.mint(next, context),
        }
      },
      end: (isWritten) => {
        if (isRequested && isWritten) return
        for (const [key, { shown }] of wanted) this.#end(key, 'release', shown)
      },
    }
  }

  /** Gives an answer of the user to a task. @returns false if there is no valid answer, so that the question is left to the model */
  #answer({ context, onUnread }: FormCall, { askedAt }: State, taskId: string, id: string): boolean {
    const key = keyOf(taskId, id)
    const question = this.#questionOf(taskId, id)
    if (question === undefined) {
      // It was answered elsewhere, or its task has ended.
      this.#end(key, 'release')
      return true
    }
    const afterMs = elapsedMs(this.#manager.reads.clock) - askedAt
    const answer = readForm(taskId, question, context.mcpReq.inputResponses?.[key], { afterMs, onUnread })
    if (answer !== undefined) this.#manager.answerTask(taskId, id, answer)
    this.#end(key, answer === undefined ? 'release' : 'acknowledge')
    return answer !== undefined
  }

  /** Keeps a question from being carried by other answers. */
  #show(key: string, { taskId, question: { id: questionId } }: Asked, shown: Shown): TaskLease | undefined {
    const label = { name: `form of question ${questionId} of task ${taskId}`, kind: 'deadline' } as const
    shown.lease = this.#manager.lease({ taskIds: [], questions: [{ taskId, questionId }] })
    shown.timer = this.#manager.reads.clock.setTimeout(() => this.#end(key, 'release', shown), SHOWN_MS, label)
    const [oldest] = this.#shown.keys()
    if (this.#shown.size > MAX_SHOWN && oldest !== undefined) this.#end(oldest, 'release')
    return shown.lease
  }

  #end(key: string, how: 'acknowledge' | 'release', shown = this.#shown.get(key)): void {
    if (shown === undefined || this.#shown.get(key) !== shown) return
    const { taskId, lease, timer } = shown
    this.#shown.delete(key)
    if (timer !== undefined) this.#manager.reads.clock.clearTimeout(timer)
    lease?.[how]()
    // A call that waits for the task may ask the question now.
    for (const wait of this.#waits) if (wait.taskIds.has(taskId)) wait.onGivenUp(taskId)
  }

  #questionOf(taskId: string, questionId: string): TaskQuestion | undefined {
    return this.#manager.getTask(taskId)?.questions?.find(({ id }) => id === questionId)
  }
}

const keyOf = (taskId: string, questionId: string): string => `${taskId}/${questionId}`
