/** The tool run_command of one client: what the configuration lets it start, in the folder of its project. */
import { resolve } from 'node:path'
import type { CommandPolicy } from '../tools/command-policy.js'
import { createRunCommandTool, type RunCommandOptions, type RunCommandParams } from '../tools/run-command.js'
import type { Tool } from '../tools/tool.js'
import type { Backend } from './backend.js'
import type { FindProject } from './working-directory.js'

/** Undefined where the configuration has no commands. */
export function createCommandTool(
  { config, folder, projectFolder }: Backend,
  options: Omit<RunCommandOptions, 'commands'>,
  findProject: FindProject,
): Tool | undefined {
  const { commands } = config
  if (commands === undefined) return undefined
  const { maxCommands: _max, cwd, ...rest } = commands
  const own = cwd === undefined ? undefined : [cwd].flat().map((each) => resolve(folder, each))
  const toolIn = (folders: readonly string[]) =>
    createRunCommandTool({ ...options, commands: { ...(rest as CommandPolicy), cwd: folders } })
  const standard = toolIn(own ?? [projectFolder])
  return {
    ...standard,
    describe: (input) => standard.describe(input as RunCommandParams),
    execute: async (input, context) => {
      const project = own === undefined ? await findProject() : undefined
      const tool = project === undefined ? standard : toolIn([project])
      return tool.execute(input as RunCommandParams, context)
    },
  }
}
