/** `agent-tasks doctor`: checks the installation, the ports and the configured programs. */
import type { Command } from 'commander'
import { EXIT } from './exit-codes.js'
import { CommandEnd } from './failures.js'
import { examine, type Finding } from './health-checks.js'
import { createTerminal, type ProgramIO } from './terminal.js'

const marks = {
  ok: { text: 'ok     ', colour: 'green' },
  note: { text: 'note   ', colour: 'yellow' },
  missing: { text: 'missing', colour: 'red' },
} as const

interface DoctorOptions {
  readonly start?: boolean
  readonly config?: string
  readonly json?: boolean
}

export function addDoctorCommand(program: Command, io: ProgramIO): void {
  program
    .command('doctor')
    .description('check installed packages, free ports, and that the programs of subagents and instances are there')
    .option('--config <file>', 'the configuration of the MCP server (default: agent-tasks.config.json, if it exists)')
    .option('--start', 'also start the instances of the file, to list their tools')
    .option('--json', 'print JSON, one finding a line')
    .addHelpText(
      'after',
      `
Programs are looked up but not started, unless --start is given. Use --start only with a file that you trust. Exit code: 0, or 6 when something is missing.

Examples:
  $ agent-tasks doctor
  $ agent-tasks doctor --start
  $ agent-tasks doctor --json | jq 'select(.state == "missing")'`,
    )
    .action((options: DoctorOptions) => diagnose(options, io))
}

async function diagnose({ config, start = false, json }: DoctorOptions, io: ProgramIO): Promise<void> {
  const terminal = createTerminal(io, 'stdout')
  const findings: Finding[] = []
  for await (const finding of examine({ configPath: config, env: io.env, cwd: process.cwd(), start })) {
    findings.push(finding)
    if (json === true) terminal.printJson(finding)
    else terminal.print([marks[finding.state], `  ${finding.check}: ${finding.detail}`])
  }
  if (findings.some(({ state }) => state === 'missing')) throw new CommandEnd(EXIT.unhealthy)
}
