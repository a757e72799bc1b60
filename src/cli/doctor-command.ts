/** `agent-tasks doctor`: checks the installation, the ports and the configured programs. */
import type { Command } from 'commander'
import { EXIT } from './exit-codes.js'
import { CommandEnd } from './failures.js'
import { examine, type Finding } from './health-checks.js'
import { createTerminal, type ProgramIO } from './terminal.js'

interface DoctorOptions {
  readonly config?: string
  readonly json?: boolean
}

export function addDoctorCommand(program: Command, io: ProgramIO): void {
  program
    .command('doctor')
    .description('check installed packages, free ports, and that subagents and instances start')
    .option('--config <file>', 'the configuration of the MCP server (default: agent-tasks.config.json, if it exists)')
    .option('--json', 'print JSON, one finding a line')
    .addHelpText(
      'after',
      `
Starts subagents with --version, and instances to list their tools. Exit code: 0, or 6 when something is missing.

Examples:
  $ agent-tasks doctor
  $ agent-tasks doctor --json | jq 'select(.state == "missing")'`,
    )
    .action((options: DoctorOptions) => diagnose(options, io))
}

async function diagnose({ config, json }: DoctorOptions, io: ProgramIO): Promise<void> {
  const terminal = createTerminal(io, 'stdout')
  const { colours } = terminal
  const marks = { ok: colours.green('ok     '), note: colours.yellow('note   '), missing: colours.red('missing') }
  const findings: Finding[] = []
  for await (const finding of examine({ configPath: config, env: io.env, cwd: process.cwd() })) {
    findings.push(finding)
    if (json === true) terminal.printJson(finding)
    else terminal.print(`${marks[finding.state]}  ${finding.check}: ${finding.detail}`)
  }
  if (findings.some(({ state }) => state === 'missing')) throw new CommandEnd(EXIT.unhealthy)
}
