/** opencode: `opencode` of the package `opencode-ai`. A plugin calls the hooks, and has the text of their answers. */
import { printed, runsProgram, type HookClient } from './hook-client.js'
import { defined, inHome, type HookSetup } from './hook-setup.js'
import { opencodePlugin, PLUGIN_MARK } from './opencode-plugin.js'

const asText = (text: string) => printed({ text })

export const opencode: HookClient = {
  name: 'opencode',
  title: 'opencode',
  seen: '1.18.33',
  isNamed: (name) => name === 'opencode',
  isProgram: runsProgram(/^\.?opencode(\.exe)?$/),
  isHeadless: ({ args }) => args.slice(1, 3).includes('run'),
  hasManySessions: true,
  stopMs: 600_000,
  toolMs: 55_000,
  wakesIdle: true,
  stopAnswer: asText,
}

export const opencodeSetup: HookSetup = {
  file: (place) =>
    place.scope === 'project'
      ? `${place.folder}/.opencode/plugin/agent-tasks.js`
      : inHome(place, '.config/opencode/plugin/agent-tasks.js'),
  isCommitted: true,
  serverFiles: (place) => defined(`${place.folder}/opencode.json`, inHome(place, '.config/opencode/opencode.json')),
  trust: 'opencode loads plugins without a question.',
  text: ({ command, server }) => opencodePlugin(command, server),
  isOwn: (text) => text.startsWith(PLUGIN_MARK),
}
