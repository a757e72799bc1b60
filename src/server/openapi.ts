/**
 * Generates the OpenAPI 3.1 document from the routes. Each named schema appears once, under `components`.
 *
 * The names are given here and not where the schemas are defined. A name in the metadata of zod would appear in every JSON Schema that is made
 * of the schema, also in those of tools.
 */
import { OpenAPIHono } from '@hono/zod-openapi'
import type { z } from 'zod'
import {
  commandErrorSchema,
  commandStatusSchema,
  endStatusSchema,
  resultReferenceSchema,
  taskCommandSchema,
  taskCompleteSchema,
  taskErrorSchema,
  taskProgressSchema,
  taskSchema,
  taskStatusSchema,
  taskSummarySchema,
} from '../protocol/command-tasks.js'
import { commandInputSchema, taskSubmitSchema } from '../protocol/task-submission.js'
import { registerRequestSchema, registerResponseSchema } from '../protocol/instance-messages.js'
import {
  healthSchema,
  instanceListSchema,
  instancePausedSchema,
  instanceSummarySchema,
  restErrorSchema,
  taskCancelledSchema,
  taskCreatedSchema,
  taskDetailSchema,
  taskListSchema,
  taskNotCancelledSchema,
  serverInfoSchema,
  toolArgumentsSchema,
  toolFailureSchema,
  toolListSchema,
  toolResultSchema,
} from '../protocol/rest.js'
import { toolDescriptionSchema } from '../protocol/tool-calls.js'
import { packageVersion } from '../system/version.js'

/** The order matters: a schema comes after the schemas that it contains. */
const named: readonly (readonly [string, z.ZodType])[] = [
  ['Error', restErrorSchema],
  ['TaskStatus', taskStatusSchema],
  ['EndStatus', endStatusSchema],
  ['CommandStatus', commandStatusSchema],
  ['CommandError', commandErrorSchema],
  ['TaskError', taskErrorSchema],
  ['ResultReference', resultReferenceSchema],
  ['CommandInput', commandInputSchema()],
  ['TaskSubmission', taskSubmitSchema()],
  ['TaskCreated', taskCreatedSchema],
  ['TaskCommand', taskCommandSchema],
  ['Task', taskSchema],
  ['TaskDetail', taskDetailSchema],
  ['TaskSummary', taskSummarySchema],
  ['TaskList', taskListSchema],
  ['TaskCancelled', taskCancelledSchema],
  ['TaskNotCancelled', taskNotCancelledSchema],
  ['TaskProgress', taskProgressSchema],
  ['TaskComplete', taskCompleteSchema],
  ['ToolDescription', toolDescriptionSchema],
  ['InstanceSummary', instanceSummarySchema],
  ['InstanceList', instanceListSchema],
  ['InstancePaused', instancePausedSchema],
  ['RegisterRequest', registerRequestSchema],
  ['RegisterResponse', registerResponseSchema],
  ['Health', healthSchema],
  ['ServerInfo', serverInfoSchema],
  ['ToolList', toolListSchema],
  ['ToolArguments', toolArgumentsSchema],
  ['ToolResult', toolResultSchema],
  ['ToolFailure', toolFailureSchema],
]

export function describeApi(app: Pick<OpenAPIHono, 'openAPIRegistry' | 'getOpenAPI31Document'>): unknown {
  app.openAPIRegistry.registerComponent('securitySchemes', 'token', { type: 'http', scheme: 'bearer' })
  const { components, paths, ...rest } = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'agent-tasks',
      version: packageVersion,
      license: { name: 'MIT' },
      description:
        'Tasks of several commands, queued per instance and run one command at a time. A token is required if the server has any configured.',
    },
    servers: [{ url: '/' }],
    tags: [
      { name: 'tasks', description: 'Submit, list, follow and cancel tasks.' },
      { name: 'instances', description: 'What the commands run on.' },
      { name: 'tools', description: 'Call one tool.' },
      { name: 'server', description: 'The state of the server.' },
    ],
    security: [{ token: [] }, {}],
  })
  /** The names of the schemas, by their JSON text. */
  const known = new Map<string, string>()
  const schemas: Record<string, unknown> = {}
  for (const [name, written] of writeSchemas()) {
    const schema = referTo(known, written)
    schemas[name] = schema
    known.set(JSON.stringify(schema), name)
  }
  return { ...rest, paths: referTo(known, paths), components: { ...components, schemas } }
}

/** The named schemas as JSON, written in the same way as in the routes. */
function writeSchemas(): (readonly [string, unknown])[] {
  const app = new OpenAPIHono()
  for (const [name, schema] of named) {
    const responses = { 200: { description: name, content: { 'application/json': { schema } } } }
    app.openAPIRegistry.registerPath({ method: 'get', path: `/${name}`, responses })
  }
  const { paths } = app.getOpenAPI31Document({ openapi: '3.1.0', info: { title: '', version: '' } }) as unknown as {
    paths: Record<string, { get: { responses: { 200: { content: { 'application/json': { schema: unknown } } } } } }>
  }
  return named.map(([name]) => [name, paths[`/${name}`]?.get.responses[200].content['application/json'].schema])
}

/** Replaces each named schema by a reference. It starts with the innermost one, because a named schema may contain others. */
function referTo(known: ReadonlyMap<string, string>, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => referTo(known, item))
  const copy = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, referTo(known, item)]))
  const name = known.get(JSON.stringify(copy))
  return name === undefined ? copy : { $ref: `#/components/schemas/${name}` }
}
