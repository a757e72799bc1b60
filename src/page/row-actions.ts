/** The actions on subagents, instances, schedules, monitors and pauses. */
import { z } from 'zod'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { lazily } from '../protocol/lazily.js'
import { parseInput } from '../protocol/parse.js'
import { strictObject } from '../protocol/strict-object.js'
import { conflict, done, madeTask, nothingSchema, type Answer } from './answers.js'
import { submitForPage } from './command-again.js'
import { launchForPage } from './launch.js'
import { fieldsSchema } from './named-fields.js'
import type { Sources } from './sources.js'

/** The maximum length of a task name that a person enters, in characters. */
const MAX_GIVEN_NAME = 1000

const pauseSchema = lazily(() => strictObject({ deliveries: z.enum(['hold', 'send']).optional() }))
const submitSchema = lazily(() =>
  strictObject({
    name: z.string().min(1).max(MAX_GIVEN_NAME).optional(),
    commands: z.array(strictObject({ tool: z.string(), args: fieldsSchema() })).min(1),
  }),
)

const noInstance: Answer = {
  status: 404,
  body: { error: 'There is no instance with this id.', code: 'INVALID_INSTANCE' },
}

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

/**
 * Creates an action on a schedule, a monitor or a pause.
 * @param act performs the action; returns false if the id is unknown
 */
const onHost =
  <Body>(schema: () => z.ZodType<Body>, act: (manager: AsyncTaskManager, id: string, body: Body) => unknown) =>
  async ({ manager, state }: Sources, id: string, given: unknown): Promise<Answer> => {
    const body = parseInput(schema(), given, 'body')
    if (manager === undefined || act(manager, id, body) === false) {
      return conflict('ENDED', 'There is no schedule, monitor or pause with this id, or it has ended.')
    }
    state.rollHost()
    await manager.stored()
    return done()
  }

/** Returns the owner in the id of a pause; undefined for the pause of all owners. */
const pausedOwner = (id: string): string | undefined => (id === 'all' ? undefined : id.replace(/^owner:/, ''))

/** The actions by the first and the last segment of their path. */
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

/** The maximum length of a default task name, in characters. */
const MAX_NAME = 200

const namedAfter = (commands: readonly { readonly tool: string }[]): string =>
  commands
    .map(({ tool }) => tool)
    .join(', ')
    .slice(0, MAX_NAME)
