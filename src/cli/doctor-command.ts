/** `agent-tasks doctor`: looks at what is installed, which ports are free, and what starts. */
import type { Command } from 'commander'
import { EXIT } from './exit-codes.js'
import { CommandEnd } from './failures.js'
import { examine, type Finding } from './health-checks.js'
import { createTerminal, type Surroundings } from './terminal.js'

interface DoctorOptions {
  readonly config?: string
  readonly json?: boolean
}

export function addDoctorCommand(program: Command, surroundings: Surroundings): void {
  program
    .command('doctor')
    .description('look at what is installed, which ports are free, and which subagents and instances start')
    .option('--config <file>', 'the configuration of the MCP server (default: agent-tasks.config.json, if it is there)')
    .option('--json', 'print JSON, a finding a line')
    .addHelpText(
      'after',
      `
Subagents are started with --version, instances are started and asked for their tools. Exit code: 0, or 6 when something is missing.

Examples:
  $ agent-tasks doctor
  $ agent-tasks doctor --json | jq 'select(.state == "missing")'`,
    )
    .action((options: DoctorOptions) => diagnose(options, surroundings))
}

async function diagnose({ config, json }: DoctorOptions, surroundings: Surroundings): Promise<void> {
  const terminal = createTerminal(surroundings, 'stdout')
  const { colours } = terminal
  const marks = { ok: colours.green('ok     '), note: colours.yellow('note   '), missing: colours.red('missing') }
  const findings: Finding[] = []
  for await (const finding of examine({ configPath: config, env: surroundings.env, cwd: process.cwd() })) {
    findings.push(finding)
    if (json === true) terminal.printJson(finding)
    else terminal.print(`${marks[finding.state]}  ${finding.check}: ${finding.detail}`)
  }
  if (findings.some(({ state }) => state === 'missing')) throw new CommandEnd(EXIT.unhealthy)
}
