/** How each client is set up with this package as its MCP server, and with its hooks. */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ClientName } from '../../../src/features/hooks/hook-client.js'

export interface WokenClient {
  /** The name in `versions.json`. */
  readonly program: string
  /** The tool `task`, as the model of the client knows it. */
  readonly tool: string
  /** Adds the MCP server to the settings of the client. */
  readonly addServer: (home: string, cwd: string, command: readonly string[]) => void
  /** The arguments of a headless run that starts a conversation, or continues one. */
  readonly args: (goal: string, sessionId?: string) => readonly string[]
  /** Arguments that let it use its MCP server and its hooks as a subagent. */
  readonly asSubagent?: readonly string[]
  /** How it is started in a terminal, and what its screen shows when it waits for a line. */
  readonly interactive?: {
    readonly prepare: (home: string, cwd: string) => void
    readonly args: readonly string[]
    readonly ready: RegExp
    /** What it asks before it runs hooks, and the keys that say yes. */
    readonly accept?: { readonly question: RegExp; readonly keys: readonly string[] }
    /** Where in HOME the ids of its conversations are found, if it has the command `/clear`. */
    readonly sessions?: { readonly folder: string; readonly id: RegExp }
  }
  /** Finds the id of the conversation in what a run has printed. */
  readonly sessionIn: RegExp
  /** The folder in HOME with a folder for each conversation, if the client prints the id only when it ends. */
  readonly sessionFolder?: string
}

/** Changes a file of JSON, which may not exist yet. */
function change(file: string, fields: object): void {
  mkdirSync(dirname(file), { recursive: true })
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as object) : {}
  writeFileSync(file, JSON.stringify({ ...before, ...fields }))
}

const servers = ([command, ...args]: readonly string[], more: object = {}) => ({
  mcpServers: { 'agent-tasks': { command, args, ...more } },
})

export const WOKEN: Readonly<Record<ClientName, WokenClient>> = {
  claude: {
    program: 'claude',
    tool: 'mcp__agent-tasks__task',
    addServer: (_home, cwd, command) => change(join(cwd, 'mcp.json'), servers(command)),
    args: (goal, id) => [
      ...['-p', '--output-format', 'stream-json', '--verbose', '--allowedTools', 'mcp__agent-tasks'],
      ...['--mcp-config', 'mcp.json', ...(id === undefined ? [] : ['--resume', id]), '--', goal],
    ],
    asSubagent: ['--mcp-config', 'mcp.json', '--allowedTools', 'mcp__agent-tasks'],
    interactive: {
      // What it asks a person when it starts for the first time.
      prepare: (home, cwd) =>
        change(join(home, '.claude.json'), {
          hasCompletedOnboarding: true,
          theme: 'dark',
          customApiKeyResponses: { approved: ['scripted'], rejected: [] },
          projects: { [cwd]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
        }),
      args: ['--mcp-config', 'mcp.json', '--allowedTools', 'mcp__agent-tasks'],
      ready: /^❯/m,
      sessions: { folder: '.claude/projects', id: /([\w-]+)\.jsonl$/ },
    },
    sessionIn: /"session_id":"([\w-]+)"/,
  },
  codex: {
    program: 'codex',
    tool: 'mcp__agent_tasks__task',
    addServer: (home, _cwd, [command, ...args]) => {
      const table = [
        '',
        '[mcp_servers.agent-tasks]',
        `command = ${JSON.stringify(command)}`,
        `args = ${JSON.stringify(args)}`,
        'tool_timeout_sec = 660',
        'required = true',
        'default_tools_approval_mode = "approve"',
        '',
      ]
      appendFileSync(join(home, '.codex/config.toml'), table.join('\n'))
    },
    // A person reviews the hooks once, with `/hooks`. The suite cannot.
    args: (goal, id) => [
      ...['exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-hook-trust'],
      ...(id === undefined ? [] : ['resume', id]),
      ...['--', goal],
    ],
    asSubagent: ['--dangerously-bypass-hook-trust'],
    interactive: {
      prepare: (home, cwd) =>
        appendFileSync(
          join(home, '.codex/config.toml'),
          `\n[projects.${JSON.stringify(cwd)}]\ntrust_level = "trusted"\n`,
        ),
      args: [],
      ready: /› Ask/,
      accept: { question: /\d\. Trust all/, keys: ['2', 'Enter'] },
      sessions: { folder: '.codex/sessions', id: /rollout-[\dT-]+-([\da-f]{8}-[\da-f-]+)\.jsonl$/ },
    },
    sessionIn: /"thread_id":"([\w-]+)"/,
  },
  gemini: {
    program: 'gemini',
    tool: 'mcp_agent-tasks_task',
    addServer: (home, _cwd, command) => change(join(home, '.gemini/settings.json'), servers(command, { trust: true })),
    args: (goal, id) => [
      ...['--output-format', 'stream-json', '--approval-mode', 'yolo', '--skip-trust'],
      ...(id === undefined ? [] : ['--resume', id]),
      `--prompt=${goal}`,
    ],
    sessionIn: /"session_id":"([\w-]+)"/,
  },
  opencode: {
    program: 'opencode',
    tool: 'agent-tasks_task',
    addServer: (home, _cwd, command) =>
      change(join(home, '.config/opencode/opencode.json'), { mcp: { 'agent-tasks': { type: 'local', command } } }),
    args: (goal, id) => [
      ...['run', '--format', 'json', '--auto', ...(id === undefined ? [] : ['--session', id]), '--'],
      ...goal.split(' '),
    ],
    interactive: { prepare: () => undefined, args: [], ready: /1 MCP/ },
    sessionIn: /"sessionID":"(\w+)"/,
  },
  qwen: {
    program: 'qwen-code',
    tool: 'mcp__agent-tasks__task',
    addServer: (home, _cwd, command) => change(join(home, '.qwen/settings.json'), servers(command, { trust: true })),
    args: (goal, id) => [
      ...['--output-format', 'stream-json', '--approval-mode', 'yolo'],
      ...(id === undefined ? [] : ['--resume', id]),
      `--prompt=${goal}`,
    ],
    sessionIn: /"session_id":"([\w-]+)"/,
  },
  copilot: {
    program: 'copilot',
    tool: 'agent-tasks-task',
    addServer: (home, _cwd, command) =>
      change(join(home, '.copilot/mcp-config.json'), servers(command, { type: 'local', tools: ['*'] })),
    args: (goal, id) => [
      ...['--output-format', 'json', '--allow-all', ...(id === undefined ? [] : [`--resume=${id}`])],
      `--prompt=${goal}`,
    ],
    sessionIn: /"sessionId":"([\w-]+)"/,
    sessionFolder: '.copilot/session-state',
  },
}
