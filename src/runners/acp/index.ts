/** `agent-tasks/acp` runs agents that speak the Agent Client Protocol as subagents. It needs the package `@agentclientprotocol/sdk`, version 2. */
export { acpRunner } from './acp-runner.js'
