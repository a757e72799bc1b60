/** What people do on the page. Each action is the manager's own: its checks, its errors. */
import { z } from 'zod'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { lazily } from '../protocol/lazily.js'
import { parseInput } from '../protocol/parse.js'
import type { Sources } from './sources.js'
import type { PageEntry } from './page-entry.js'
import { submitForPage } from './command-again.js'
import { launchForPage } from './launch.js'
import { fieldsSchema, isRecord } from './named-fields.js'
import { runAgain, type Again } from './run-again.js'
import type { ActionDone, ActionError, CancelRequest, MessageRequest } from './wire.js'
import { strictObject } from '../protocol/strict-object.js'

/** The status and the body of an answer. */
export interface Answer {
  readonly status: 200 | 400 | 404 | 409 | 503
  readonly body: ActionDone | ActionError
}

/** The longest reason of a cancellation, in characters. */
const MAX_REASON = 1000
/** The longest name that a person gives to a task, in characters. */
const MAX_GIVEN_NAME = 1000

const cancelSchema = lazily(() => strictObject({ reason: z.string().max(MAX_REASON).optional() }))
const pauseSchema = lazily(() => strictObject({ deliveries: z.enum(['hold', 'send']).optional() }))
const nothingSchema = lazily(() => strictObject({}))
// The manager checks the answer itself.
const answerSchema = lazily(() =>
  strictObject({
    questionId: z.string(),
    answer: z.custom<Readonly<Record<string, unknown>>>(
      isRecord,
      'an object with an action: accept, decline or cancel',
    ),
  }),
)
const contentSchema = lazily(() => z.looseObject({ content: fieldsSchema().optional() }))
const messageSchema = lazily(() => strictObject({ message: z.string().min(1) }))
const submitSchema = lazily(() =>
  strictObject({
    name: z.string().min(1).max(MAX_GIVEN_NAME).optional(),
    commands: z.array(strictObject({ tool: z.string(), args: fieldsSchema() })).min(1),
  }),
)

const done = (more: ActionDone = {}): Answer => ({ status: 200, body: more })
const conflict = (code: string, error: string): Answer => ({ status: 409, body: { error, code } })

const noInstance: Answer = {
  status: 404,
  body: { error: 'There is no instance with this id.', code: 'INVALID_INSTANCE' },
}

const notStored = (error: string): Answer => ({ status: 503, body: { error, code: 'NOT_STORED' } })

const CANCEL_NOT_STORED = notStored(
  'The task was cancelled, but this could not be stored yet. If the host ends before it is, the task may run again.',
)
const ANSWER_NOT_STORED = notStored(
  'The question was answered, but this could not be stored yet. If the host ends before it is, the question may be asked again.',
)

type Action = (sources: Sources, entry: PageEntry, body: unknown) => Answer | Promise<Answer>

/** The actions on a task, by the last part of their path. */
export const taskActions: Readonly<Record<string, Action>> = {
  cancel: async (sources, entry, body) => {
    const { reason }: CancelRequest = parseInput(cancelSchema(), body, 'body')
    const why = reason === undefined || reason === '' ? 'cancelled on the page' : reason
    const { manager, taskManager } = sources
    const isCancelled =
      entry.kind === 'async'
        ? manager?.cancelTask(entry.record.id, { reason: why })
        : taskManager?.cancelTask(entry.id, why)
    if (isCancelled !== true) return conflict('TASK_ENDED', 'The task has ended: there is nothing to cancel.')
    try {
      await (entry.kind === 'async' ? manager : taskManager)?.stored()
      return done()
    } catch {
      return CANCEL_NOT_STORED
    }
  },
  detach: (sources, entry, body) => {
    parseInput(nothingSchema(), body, 'body')
    if (entry.kind !== 'async') return conflict('NOT_DETACHED', 'A command task always runs in the background.')
    const result = sources.manager?.detachTask(entry.record.id)
    return result?.detached === true ? done() : conflict('NOT_DETACHED', result?.reason ?? 'There is no such task.')
  },
  'run-again': async (sources, entry, body) => {
    parseInput(nothingSchema(), body, 'body')
    return madeTask(await runAgain(sources, entry.key))
  },
  answer: async (sources, entry, body) => {
    const { questionId, answer } = parseInput(answerSchema(), body, 'body')
    parseInput(contentSchema(), answer, 'answer')
    if (entry.kind !== 'async') return conflict('NO_QUESTION', 'A command task asks no questions.')
    const isAnswered = sources.manager?.answerTask(entry.record.id, questionId, answer)
    if (isAnswered !== true) {
      return conflict(
        'QUESTION_CLOSED',
        'This question is not open: it was answered, or its task has gone on without it.',
      )
    }
    sources.state.noteAnswer(entry, questionId)
    try {
      await sources.manager?.stored()
      return done()
    } catch {
      return ANSWER_NOT_STORED
    }
  },
  message: (sources, entry, body) => {
    const { message }: MessageRequest = parseInput(messageSchema(), body, 'body')
    if (entry.kind !== 'async') return conflict('NOT_SENT', 'A command task takes no messages.')
    const result = sources.manager?.sendToTask(entry.record.id, message)
    if (result?.sent !== true) return conflict('NOT_SENT', result?.reason ?? 'There is no such task.')
    sources.state.noteMessage(entry, message)
    return done()
  },
}

/** Runs a task again that may be in the history alone. */
export async function runAgainOf(sources: Sources, key: string, body: unknown): Promise<Answer> {
  parseInput(nothingSchema(), body, 'body')
  return madeTask(await runAgain(sources, key))
}

const madeTask = (made: Again): Answer => ('key' in made ? done({ key: made.key }) : conflict(made.code, made.error))

export async function submit({ taskManager }: Sources, instanceId: string, body: unknown): Promise<Answer> {
  const { name, commands } = parseInput(submitSchema(), body, 'body')
  if (taskManager?.instances.get(instanceId) === undefined) return noInstance
  const submitted = await submitForPage(taskManager, {
    type: 'task_submit',
    task_name: name ?? namedAfter(commands),
    instanceId,
    commands: commands.map(({ tool, args }) => ({ tool_name: tool, args })),
  })
  if ('key' in submitted) return done(submitted)
  const { error, code } = submitted
  return { status: code === 'INVALID_TASK' || code === 'NO_COMMANDS' ? 400 : 409, body: { error, code } }
}

/** Acts on a schedule, a monitor or a pause. @param act returns false for what is not there */
const onHost =
  <Body>(schema: () => z.ZodType<Body>, act: (manager: AsyncTaskManager, id: string, body: Body) => unknown) =>
  async ({ manager, state }: Sources, id: string, given: unknown): Promise<Answer> => {
    const body = parseInput(schema(), given, 'body')
    if (manager === undefined || act(manager, id, body) === false) {
      return conflict('ENDED', 'It is not there, or has ended before.')
    }
    state.rollHost()
    await manager.stored()
    return done()
  }

/** The owner that the id of a pause names; undefined for all. */
const pausedOwner = (id: string): string | undefined => (id === 'all' ? undefined : id.replace(/^owner:/, ''))

/** The actions on what is no task, by the first and the last part of their path. */
export const rowActions: Readonly<Record<string, (sources: Sources, id: string, body: unknown) => Promise<Answer>>> = {
  'instances/submit': submit,
  'subagents/launch': async (sources, name, body) => madeTask(await launchForPage(sources, name, body)),
  'instances/pause': (sources, id, body) => setPaused(sources, id, body, true),
  'instances/resume': (sources, id, body) => setPaused(sources, id, body, false),
  'schedules/cancel': onHost(nothingSchema, (manager, id) => manager.cancelSchedule(id)),
  'monitors/cancel': onHost(nothingSchema, (manager, id) =>
    manager.monitors().some((monitor) => monitor.id === id && monitor.cancel('on the page')),
  ),
  'pauses/pause': onHost(pauseSchema, (manager, id, how) => manager.pause(pausedOwner(id), { ...how, by: 'the page' })),
  'pauses/resume': onHost(nothingSchema, (manager, id) => manager.resume(pausedOwner(id))),
}

async function setPaused({ taskManager }: Sources, id: string, body: unknown, isPaused: boolean): Promise<Answer> {
  parseInput(nothingSchema(), body, 'body')
  if (taskManager?.instances.get(id) === undefined) return noInstance
  if (isPaused) taskManager.pauseInstance(id)
  else taskManager.resumeInstance(id)
  await taskManager.stored()
  return done()
}

/** The longest name that a task gets by itself, in characters. */
const MAX_NAME = 200

const namedAfter = (commands: readonly { readonly tool: string }[]): string =>
  commands
    .map(({ tool }) => tool)
    .join(', ')
    .slice(0, MAX_NAME)

/** The answer for what an action has thrown; undefined for what is not the client's affair. */
export function refusalOf(error: unknown): Answer | undefined {
  if (error instanceof InvalidInputError) {
    return { status: 400, body: { error: error.message, code: error.code, field: fieldOf(error) } }
  }
  if (error instanceof AgentTasksError) return conflict(error.code, error.message)
  return undefined
}

/** The path of the wrong field in its request: `answer.content.color` is `content.color`, and `body.commands[0]` is `commands.0`. */
const fieldOf = ({ field }: InvalidInputError): string => field.replace(/^[^.[]+\.?/, '').replace(/\[(\d+)\]/g, '.$1')
