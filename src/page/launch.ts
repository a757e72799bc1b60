/** Launches a task when a person asks for it, and lists the subagents that a person can launch. */
import type { z } from 'zod'
import { omitUndefined } from '../data/omit-undefined.js'
import { withoutContextSchema } from '../engine/context-schema.js'
import { InvalidInputError } from '../errors.js'
import { jsonBytes } from '../data/json-size.js'
import { jsonSchemaOf } from '../protocol/json-schema.js'
import { lazily } from '../protocol/lazily.js'
import { ownerName } from '../protocol/async-tasks.js'
import { parseInput } from '../protocol/parse.js'
import { strictObject } from '../protocol/strict-object.js'
import { subagentOffer, type SubagentOffer } from '../tools/offered-subagents.js'
import { fromParams } from '../protocol/run-fields.js'
import type { ResolvedSubagent } from '../tools/subagents.js'
import { taskSchema } from '../tools/task-tool.js'
import { cutText } from '../data/cut-text.js'
import { asyncKey } from './async-entry.js'
import { fieldsSchema } from './named-fields.js'
import type { Again } from './plan-again.js'
import type { Sources } from './sources.js'
import type { PageSubagent, PageSubagents } from './wire.js'

/**
 * The maximum number of listed subagents, the maximum size of all their schemas in bytes of JSON, and the maximum lengths of a description and of the
 * list of names in an error, in characters.
 */
const LISTED = { subagents: 500, schemaBytes: 1024 * 1024, descriptionChars: 2000, namesChars: 1000 } as const

const optionsSchema = lazily(() =>
  taskSchema().pick({
    behaviour_prompts: true,
    tool_whitelist: true,
    expected_outputs: true,
    timeout_seconds: true,
    concurrency_key: true,
  }),
)

const launchSchema = lazily(() =>
  strictObject({
    goal: taskSchema().shape.goal_prompt,
    owner: ownerName().optional(),
    context: fieldsSchema().optional(),
    options: optionsSchema().optional(),
  }),
)

/** Returns the subagents that the host offers to a person; undefined if there are none. */
export function offerOf({ manager }: Pick<Sources, 'manager'>): SubagentOffer | undefined {
  const offer = manager?.reads.use(subagentOffer).offer
  return offer === undefined || offer.list().size === 0 ? undefined : offer
}

/** The subagents that a person can launch. If the schemas together are too large, the form has a JSON field for the context instead. */
export function listSubagents(sources: Sources): PageSubagents {
  const offer = offerOf(sources)
  let room: number = LISTED.schemaBytes
  const subagents = [...(offer?.list() ?? [])]
    .slice(0, LISTED.subagents)
    .map(([name, { description, contextSchema }]) => {
      const listed: PageSubagent = {
        name,
        ...(description !== undefined && { description: cutText(description, LISTED.descriptionChars) }),
      }
      const schema = contextSchema && jsonSchemaOf(contextSchema)
      const bytes = schema === undefined ? 0 : jsonBytes(schema, room)
      if (schema === undefined || bytes > room) return listed
      room -= bytes
      return { ...listed, contextSchema: schema }
    })
  return { owner: offer?.owner ?? '', subagents, optionsSchema: titled(jsonSchemaOf(optionsSchema())) }
}

const TITLES: Readonly<Record<string, string>> = {
  behaviour_prompts: 'Instructions',
  tool_whitelist: 'Tools',
  expected_outputs: 'Outputs',
  timeout_seconds: 'Deadline in seconds',
  concurrency_key: 'Concurrency key',
}

function titled(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const fields = Object.entries(schema['properties'] as Readonly<Record<string, object>>)
  const properties = fields.map(([name, field]) => [name, { title: TITLES[name], ...field }] as const)
  return { ...schema, properties: Object.fromEntries(properties) }
}

/**
 * Launches a task of a subagent.
 * @throws INVALID_INPUT if the subagent is unknown or a field is wrong
 * @throws TASK_LIMIT if the host has too many tasks
 * @throws StoreError if the launch cannot be stored
 */
export async function launchForPage(sources: Sources, name: string, body: unknown): Promise<Again> {
  const { manager } = sources
  const offer = offerOf(sources)
  if (manager === undefined || offer === undefined) {
    return { error: 'The host of this page has no subagents.', code: 'NO_SUBAGENTS' }
  }
  const known = offer.list()
  const subagent = known.get(name)
  if (subagent === undefined) {
    throw new InvalidInputError(
      'body.subagent',
      name,
      `one of ${cutText([...known.keys()].join(', '), LISTED.namesChars)}`,
    )
  }
  const { goal, owner = offer.owner, options = {}, ...given } = parseInput(launchSchema(), body, 'body')
  const { timeout_seconds = -1, concurrency_key: concurrencyKey, ...further } = options
  const context = contextOf(subagent, given.context)
  const params = { ...further, ...omitUndefined({ context }) }
  const input = {
    subagentName: name,
    goalPrompt: goal,
    owner,
    ...fromParams(params),
    ...(timeout_seconds !== -1 && { timeoutMs: timeout_seconds * 1000 }),
    ...omitUndefined({ concurrencyKey }),
  }
  const { id } = offer.launching(owner, () => manager.launch(input, withoutContextSchema(subagent)))
  await manager.stored()
  return { key: asyncKey(id) }
}

function contextOf(
  { contextSchema }: ResolvedSubagent,
  given: Readonly<Record<string, unknown>> | undefined,
): Readonly<Record<string, unknown>> | undefined {
  if (contextSchema === undefined) return given
  return parseInput(contextSchema as z.ZodType<Readonly<Record<string, unknown>>>, given ?? {}, 'body.context')
}
