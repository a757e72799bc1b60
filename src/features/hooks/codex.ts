/** Codex: `codex` of the package `@openai/codex`. */
import { folderIn, printed, runsProgram, type HookClient } from './hook-client.js'
import { defined, type HookSetup } from './hook-setup.js'

const ROLES: readonly unknown[] = ['user', 'assistant', 'developer']

export const codex: HookClient = {
  name: 'codex',
  title: 'Codex',
  seen: '0.171.0',
  isNamed: (name) => name === 'codex-mcp-client',
  isProgram: runsProgram(/^codex(\.exe|\.js)?$/),
  isHeadless: ({ args }) => args.slice(1, 3).some((argument) => argument === 'exec' || argument === 'e'),
  hasManySessions: true,
  hooksCallTools: true,
  stopMs: 290_000,
  wakeArgs: (sessionId, message) => ['queue', '--thread', sessionId, '--message', message],
  toolMs: 290_000,
  stopAnswer: (reason) => printed({ decision: 'block', reason }),
  promptAnswer: (additionalContext) =>
    printed({ hookSpecificOutput: { hookEventName: 'UserPromptSubmit', additionalContext } }),
  transcripts: (env) => {
    const folder = folderIn(env, 'CODEX_HOME', '.codex')
    return folder === undefined ? undefined : `${folder}/sessions`
  },
  replayedText: ({ type, payload }) => {
    const { type: kind, role, content } = Object(payload) as { type?: unknown; role?: unknown; content?: unknown }
    return type === 'response_item' && kind === 'message' && ROLES.includes(role) ? content : undefined
  },
}

const SESSION = { session_id: '${session_id}', transcript_path: '${transcript_path}' }

export const codexSetup: HookSetup = {
  file: ({ scope, folder, env }) => {
    const own = folderIn(env, 'CODEX_HOME', '.codex')
    if (scope === 'project') return `${folder}/.codex/hooks.json`
    return own === undefined ? undefined : `${own}/hooks.json`
  },
  isCommitted: true,
  serverFiles: ({ env }) => {
    const own = folderIn(env, 'CODEX_HOME', '.codex')
    return defined(own && `${own}/config.toml`)
  },
  trust:
    'Codex runs a hook only after you have reviewed it: start `codex`, enter `/hooks`, and trust both. Until then, `codex exec` leaves them out and says nothing.',
  entries: ({ server, wakesIdle = false }) => [
    {
      path: ['hooks', 'Stop'],
      value: {
        hooks: [
          {
            type: 'mcp_tool',
            server,
            tool: 'agent_tasks_stop',
            input: {
              ...SESSION,
              stop_hook_active: '${stop_hook_active}',
              ...(wakesIdle && { wakes_idle: true }),
            },
            timeout: 300,
          },
        ],
      },
    },
    {
      path: ['hooks', 'UserPromptSubmit'],
      value: {
        hooks: [{ type: 'mcp_tool', server, tool: 'agent_tasks_prompt', input: { ...SESSION, prompt: '${prompt}' } }],
      },
    },
  ],
}
