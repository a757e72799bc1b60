/** opencode: `opencode` of the package `opencode-ai`. A plugin calls the hooks, and has the text of their answers. */
import { printed, runsProgram, type HookClient } from './hook-client.js'

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
