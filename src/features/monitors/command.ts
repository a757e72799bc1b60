/** The slash commands /monitors and /monitor cancel. */
import { givenManager } from '../../async-tasks/given-manager.js'
import { monitorLines, type TaskMonitor } from './monitors.js'
import { toOneLine } from '../../data/control-characters.js'
import {
  defineCommand,
  groupCommands,
  LIST_CHARS,
  type SlashCommand,
  type TaskCommandsOptions,
} from '../../host/commands/command.js'

/** Creates `/monitors`, which lists the monitors, and `/monitor cancel <monitor_id>`. The owner of a cancelled monitor receives a message about it. */
export function monitorCommands(options: TaskCommandsOptions): readonly SlashCommand[] {
  const present = (): TaskMonitor[] => givenManager(options).monitors(options.owner)
  const list = defineCommand({
    name: 'monitors',
    description: 'List the monitors',
    run: () => ({ type: 'info', text: monitorLines(present(), givenManager(options).reads.clock.now(), LIST_CHARS) }),
  })
  const cancel = defineCommand({
    name: 'cancel',
    description: 'End a monitor',
    run: (id) => {
      const found = present().find((monitor) => monitor.id === id)
      return found?.cancel('by the user') === true
        ? { type: 'info', text: `Cancelled monitor: ${toOneLine(id)}` }
        : { type: 'error', text: toOneLine(`Monitor not found: ${id}`) }
    },
    complete: (partial) => present().flatMap(({ id }) => (id.startsWith(partial) ? [id] : [])),
  })
  const usage = 'Usage: /monitor cancel <monitor_id>'
  return [list, groupCommands({ name: 'monitor', description: 'End a monitor', usage, subcommands: [cancel] })]
}
