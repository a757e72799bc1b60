/**
 * The variables in which clients of MCP name their conversation to their own programs. A program that inherited them would speak for the
 * conversation of the client that has started this process: a coding agent as a subagent would take itself for a part of it.
 */
const CLIENT_VARIABLE =
  /^(CLAUDECODE|CLAUDE_PID|CLAUDE_ENV_FILE|CLAUDE_CODE_(SESSION_|MESSAGING_|CHILD_|LAUNCHED_BY_|ENTRYPOINT)\w*|CODEX_THREAD_ID|COPILOT_AGENT_SESSION_ID|GEMINI_SESSION_ID|QWEN_CODE_SESSION_ID|OPENCODE_PID)$/

/** Returns an environment without those variables, except for values that the host has set itself. */
export function withoutClientVariables(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name, value]) => !CLIENT_VARIABLE.test(name) || value !== process.env[name])
  return Object.fromEntries(kept)
}
