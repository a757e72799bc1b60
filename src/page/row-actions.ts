/** The actions on subagents, on instances and on the rows of features. */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import { parseInput } from '../protocol/parse.js'
import { strictObject } from '../protocol/strict-object.js'
import { done, madeTask, nothingSchema, type Answer } from './answers.js'
import { submitForPage } from './command-again.js'
import { launchForPage } from './launch.js'
import { fieldsSchema } from './named-fields.js'
import { ofFeatures } from './page-features.js'
import type { Sources } from './sources.js'

/** The maximum length of a task name that a person enters, in characters. */
const MAX_GIVEN_NAME = 1000

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

/** The actions by the first and the last segment of their path. */
export const rowActions: Readonly<Record<string, (sources: Sources, id: string, body: unknown) => Promise<Answer>>> = {
  'instances/submit': submit,
  'subagents/launch': async (sources, name, body) => madeTask(await launchForPage(sources, name, body)),
  'instances/pause': (sources, id, body) => setPaused(sources, id, body, true),
  'instances/resume': (sources, id, body) => setPaused(sources, id, body, false),
  ...ofFeatures('rowActions'),
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
