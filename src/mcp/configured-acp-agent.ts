/**
 * A subagent of the configuration that speaks the Agent Client Protocol. The package for this protocol is optional, so it is loaded when a task starts.
 */
import type { AcpRunnerOptions } from '../runners/acp/acp-options.js'
import type { OutputRunner } from '../engine/runner.js'
import { AgentTasksError } from '../errors.js'
import { whyNoSession } from '../runners/printed-session.js'

export function configuredAcpAgent(options: AcpRunnerOptions): OutputRunner {
  return {
    run: async (input, context) => (await loadRunner())(options).run(input, context),
    whyNotContinue: ({ session }) => whyNoSession(session),
    runsElsewhere: true,
  }
}

/** @throws AgentTasksError `PACKAGES_MISSING` when the package is not installed */
async function loadRunner() {
  try {
    return (await import('../runners/acp/acp-runner.js')).acpRunner
  } catch (cause) {
    if ((cause as { readonly code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    const message =
      'Subagents with "acp" need the package @agentclientprotocol/sdk. Run: npm install @agentclientprotocol/sdk@2'
    throw new AgentTasksError('PACKAGES_MISSING', message, { cause })
  }
}
