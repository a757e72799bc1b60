/** Answers the requests of an agent. Permissions follow the policy, or the owner of the task decides. Forms are always questions to the owner. */
import { RequestError } from '@agentclientprotocol/sdk'
import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from '@agentclientprotocol/sdk'
import type { TaskAnswer } from '../../../machines/records.js'
import type { RunContext } from '../../engine/runner.js'
import { InvalidInputError, QuestionWithdrawnError } from '../../errors.js'
import type { TaskQuestionInput } from '../../protocol/task-questions.js'
import { cutText } from '../../data/cut-text.js'
import { policyFor, type AcpPermissions } from './acp-options.js'
import { answersOf, formOf, questionsIn } from './agent-questions.js'
import { oneLine, type SessionUpdates } from './session-updates.js'

/** The maximum number of options that a question shows. */
const MAX_OPTIONS = 20

/** The maximum length of a tool's input in a question, in characters. */
const MAX_INPUT_CHARS = 2000

/** The maximum length of the message of a form, in characters. */
const MAX_MESSAGE_CHARS = 20_000

type Ask = RunContext['ask']

/** What is needed to answer a request for permission. */
export interface Asking {
  readonly ask: Ask
  readonly subagentName: string
  readonly permissions: AcpPermissions
  readonly updates: Pick<SessionUpdates, 'toolCall'>
}

const cancelled: RequestPermissionResponse = { outcome: { outcome: 'cancelled' } }

const choose = (option: PermissionOption | undefined): RequestPermissionResponse =>
  option === undefined ? cancelled : { outcome: { outcome: 'selected', optionId: option.optionId } }

/**
 * Answers `session/request_permission`. A policy never allows more than one use. If the agent offers no option for a single use, the owner of the
 * task is asked. Questions of the model are no permissions: the owner always gets them.
 * @param signal when it aborts, the answer is `cancelled`
 */
export async function answerPermission(
  { ask, subagentName, permissions, updates }: Asking,
  { toolCall, options }: RequestPermissionRequest,
  signal: AbortSignal,
): Promise<RequestPermissionResponse> {
  if (signal.aborted) return cancelled
  const option = (kind: string) => options.find((one) => one.kind === kind)
  const refusal = option('reject_once') ?? option('reject_always')
  const questions = questionsIn(toolCall)
  if (questions !== undefined) {
    const answered = await askOwner(ask, formOf(questions), signal)
    if (answered?.action !== 'accept') return answered === undefined ? cancelled : choose(refusal)
    const response: RequestPermissionResponse & { readonly answers: object } = {
      ...choose(option('allow_once')),
      answers: answersOf(answered),
    }
    return response
  }
  const { kind, title } = updates.toolCall(toolCall)
  const policy = policyFor(permissions, kind)
  if (policy === 'deny') return choose(refusal)
  if (policy === 'allow' && option('allow_once') !== undefined) return choose(option('allow_once'))
  const labels = labelsOf(options)
  if (labels.size === 0) return cancelled
  const input =
    toolCall.rawInput === undefined ? '' : `\n${cutText(JSON.stringify(toolCall.rawInput), MAX_INPUT_CHARS)}`
  const message = `${subagentName} asks for permission to use a tool (${kind}): ${title}${input}`
  const answer = await askOwner(ask, { message, choices: [...labels.keys()] }, signal)
  if (answer === undefined) return cancelled
  if (answer.action !== 'accept') return choose(refusal)
  return choose(labels.get(String(answer.content?.['answer'])))
}

/** Returns the options by the texts that the owner can choose. */
function labelsOf(options: readonly PermissionOption[]): ReadonlyMap<string, PermissionOption> {
  const labels = new Map<string, PermissionOption>()
  for (const option of options.slice(0, MAX_OPTIONS)) {
    let label = oneLine(option.name) || option.kind
    while (labels.has(label)) label += ` (${labels.size + 1})`
    labels.set(label, option)
  }
  return labels
}

/**
 * Answers `elicitation/create`. A form becomes a question to the owner of the task, with the schema of the form.
 * @throws RequestError for a schema that questions do not support
 */
export async function answerElicitation(
  ask: Ask,
  request: CreateElicitationRequest,
  signal: AbortSignal,
): Promise<CreateElicitationResponse> {
  if (request.mode !== 'form' || !('requestedSchema' in request)) return { action: 'decline' }
  const message = cutText(request.message, MAX_MESSAGE_CHARS)
  const schema = { type: 'object', ...withoutNulls(request.requestedSchema as object) }
  const answer = await askOwner(ask, { message, schema }, signal)
  if (answer?.action !== 'accept') return { action: answer?.action ?? 'cancel' }
  return { action: 'accept', content: (answer.content ?? {}) as Record<string, string> }
}

/** Removes null fields. In ACP null means that a field is absent; in JSON Schema it does not. */
const withoutNulls = (schema: object): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema), (_, value: unknown) => (value === null ? undefined : value)) as Record<
    string,
    unknown
  >

/** Asks the owner of the task. Resolves with undefined when the question was withdrawn. */
async function askOwner(ask: Ask, question: TaskQuestionInput, signal: AbortSignal): Promise<TaskAnswer | undefined> {
  try {
    return await ask(question, { signal })
  } catch (error) {
    if (signal.aborted || error instanceof QuestionWithdrawnError) return undefined
    if (error instanceof InvalidInputError) throw RequestError.invalidParams(undefined, error.message)
    throw error
  }
}
