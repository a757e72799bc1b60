/** The clients whose hooks this package knows. */
import { claude, claudeSetup } from './claude.js'
import { codex, codexSetup } from './codex.js'
import { copilot, copilotSetup } from './copilot.js'
import { gemini, geminiSetup } from './gemini.js'
import type { HookSetup } from './hook-setup.js'
import { CLIENT_NAMES, type ClientName, type HookClient } from './hook-client.js'
import { opencode, opencodeSetup } from './opencode.js'
import { qwen, qwenSetup } from './qwen.js'

export const HOOK_CLIENTS: Readonly<Record<ClientName, HookClient>> = {
  claude,
  codex,
  gemini,
  opencode,
  qwen,
  copilot,
}

/** Finds the client by the name that it gives in `initialize` (MCP, `clientInfo`). */
export const clientNamed = (clientInfoName: string): HookClient | undefined =>
  CLIENT_NAMES.map((name) => HOOK_CLIENTS[name]).find(({ isNamed }) => isNamed(clientInfoName))

/** The names of clients that close their connection after one call: `mcporter call` (seen with 0.12.3), `mcp-inspector --cli` (2.12.0). */
export const ONE_SHOT_CLIENTS: readonly string[] = ['mcporter', 'inspector-cli']

export const HOOK_SETUPS: Readonly<Record<ClientName, HookSetup>> = {
  claude: claudeSetup,
  codex: codexSetup,
  gemini: geminiSetup,
  opencode: opencodeSetup,
  qwen: qwenSetup,
  copilot: copilotSetup,
}
