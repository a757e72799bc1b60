/** The clients whose hooks this package knows. */
import { claude } from './claude.js'
import { codex } from './codex.js'
import { copilot } from './copilot.js'
import { gemini } from './gemini.js'
import { CLIENT_NAMES, type ClientName, type HookClient } from './hook-client.js'
import { opencode } from './opencode.js'
import { qwen } from './qwen.js'

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
