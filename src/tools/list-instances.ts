/** The tool list_instances: the instances that submit_commands can use, and their tools. */
import { z } from 'zod'
import { boundLines, previewText } from '../features/output/bounded-text.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { lazily } from '../protocol/lazily.js'
import { describeFailure } from '../protocol/outcomes.js'
import { preview } from '../data/preview.js'
import type { InstanceSource, InstanceTool, ListedInstance } from './instance-source.js'
import { readToolOptions } from './task-tool-options.js'
import type { ToolDescriptor } from './tool-descriptor.js'
import { outputOf } from './tool-output.js'
import { defineTool, errorResult, type Tool } from './tool.js'
import { strictObject } from '../protocol/strict-object.js'

const listInstancesSchema = lazily(() =>
  strictObject({
    instance_id: z.string().optional().describe('One instance: its tools, with the schemas of their arguments.'),
  }),
)

const NAME = 'list_instances'
const DESCRIPTION_CHARS = 200

/**
 * Creates the tool. It first connects the instances, because a model needs their tools. It waits only briefly: the remaining instances are listed as
 * connecting.
 */
export function createListInstancesTool(source: InstanceSource, maxChars: number): Tool {
  return defineTool({
    name: NAME,
    description: 'List the instances of submit_commands, and the tools of each.',
    inputSchema: listInstancesSchema(),
    describe: ({ instance_id }) =>
      instance_id === undefined ? 'List the instances' : `Show instance '${instance_id}'`,
    run: async ({ instance_id }) => {
      await (instance_id === undefined ? source.settle() : source.ready(instance_id))
      const all = await source.list()
      const shown = instance_id === undefined ? all : all.filter(({ id }) => id === instance_id)
      if (instance_id !== undefined && shown.length === 0) {
        const known = all.length === 0 ? `${source.none}.` : `Known: ${all.map(({ id }) => id).join(', ')}.`
        const message = `params.instance_id: got ${preview(instance_id)}, expected the ID of an instance. ${known}`
        return errorResult('parameter_validation', message)
      }
      const described = await Promise.all(
        shown.map((instance) => describeInstance(instance, instance_id !== undefined)),
      )
      const lines = described.flatMap(({ lines: own }) => own)
      const text = shown.length === 0 ? `${source.none}.` : boundLines(lines, maxChars)
      return {
        llmContent: text,
        returnDisplay: text,
        metadata: { instances: described.map(({ entry }) => entry) },
      }
    },
  })
}

async function describeInstance(
  { id, state: connection, isPaused, error, listTools }: ListedInstance,
  isDetailed: boolean,
): Promise<{ readonly lines: readonly string[]; readonly entry: Readonly<Record<string, unknown>> }> {
  const state = isPaused === true ? `${connection}, paused` : connection
  const entry = { id, state, ...omitUndefined({ error }) }
  if (listTools === undefined) {
    return { lines: [`${id} (${state})${error === undefined ? '' : `: ${error}`}`], entry }
  }
  try {
    const tools = await listTools()
    return {
      lines: [`${id} (${state}): ${tools.length} tool(s)`, ...tools.map((tool) => toolLine(tool, isDetailed))],
      entry: { ...entry, tools: tools.map(({ name }) => name) },
    }
  } catch (cause) {
    const problem = describeFailure(cause)
    return {
      lines: [`${id} (${state}): its tools could not be listed: ${problem}`],
      entry: { ...entry, error: problem },
    }
  }
}

function toolLine({ name, description = '', inputSchema }: InstanceTool, isDetailed: boolean): string {
  const about = isDetailed ? description : previewText(description.replace(/\s+/g, ' '), DESCRIPTION_CHARS)
  const schema = isDetailed && inputSchema !== undefined ? `\n  arguments: ${JSON.stringify(inputSchema)}` : ''
  return `- ${name}${about === '' ? '' : `: ${about}`}${schema}`
}

export const listInstancesTool: ToolDescriptor = {
  name: NAME,
  title: 'List the instances',
  summary: 'Shows the instances and their tools.',
  purpose: 'shows the instances and their tools.',
  hints: { readOnlyHint: true, idempotentHint: true },
  output: lazily(() =>
    outputOf({
      instances: [
        'instances',
        z.array(
          z.object({
            id: z.string(),
            state: z.string(),
            tools: z.array(z.string()).optional(),
            error: z.string().optional(),
          }),
        ),
      ],
    }),
  ),
  needsInstances: true,
  served: {
    create: ({ instances, shown }) => instances && createListInstancesTool(instances, readToolOptions(shown).maxChars),
  },
}
