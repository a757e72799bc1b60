/** `agent-tasks config set`: changes one field of a configuration and keeps its comments. */
import { randomUUID } from 'node:crypto'
import { chmodSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { ConfigFileError } from '../errors.js'
import { loadAgentConfig, parseConfigBytes } from '../mcp/config-file.js'
import { withField } from '../mcp/config-edit.js'
import { readFoundFile } from '../mcp/found-file.js'
import { howToConfigure } from '../mcp/starter-config.js'
import { describeUntrusted } from '../mcp/trust.js'
import { CONFIG_FILE_NAME } from '../protocol/agent-config.js'
import { describeFailure } from '../protocol/outcomes.js'
import { createTerminal, type ProgramIO } from './terminal.js'

interface SetOptions {
  readonly write?: boolean
  readonly config: string
}

export function addConfigSet(config: Command, io: ProgramIO): void {
  config
    .command('set')
    .description('change a field of agent-tasks.config.json; comments stay')
    .argument('<field>', 'such as maxAsyncTasks, or subagents[0].timeoutSeconds')
    .argument('<value>', 'JSON; anything else is a text')
    .option('--write', 'change the file, instead of printing what it would contain')
    .option('--config <file>', 'the file to change', CONFIG_FILE_NAME)
    .addHelpText(
      'after',
      `
Nothing is written if the result is not a valid configuration. A file that is found by its name has to be trusted again after a change.

Examples:
  $ agent-tasks config set maxAsyncTasks 3
  $ agent-tasks config set 'subagents[0].timeoutSeconds' 600 --write
  $ agent-tasks config set store .agent/tasks --write`,
    )
    .action((field: string, value: string, options: SetOptions) => set(field, value, options, io))
}

/** @throws INVALID_INPUT, or INVALID_CONFIG when the file is not a configuration before or after the change */
function set(field: string, value: string, { write, config }: SetOptions, io: ProgramIO): void {
  const file = resolve(config)
  const found = readFoundFile(file)
  if (found === undefined) throw new ConfigFileError(file, `there is no such file. ${howToConfigure(file)}`)
  if ('problem' in found) throw new ConfigFileError(file, `${found.problem}.`)
  parseConfigBytes(found.bytes, file)
  const text = withField(found.bytes.toString('utf8'), field, valueOf(value))
  parseConfigBytes(Buffer.from(text), file)
  const { print, printLines, printResult } = createTerminal(io, 'stdout')
  if (write !== true) {
    printResult(text.replace(/\r?\n$/, ''))
    return
  }
  replace(file, text, found.stats.mode)
  print(`Changed ${field} in ${file}.`)
  if (basename(file) !== CONFIG_FILE_NAME) return
  const { untrusted } = loadAgentConfig(undefined, dirname(file), io.env)
  if (untrusted !== undefined) printLines(describeUntrusted(untrusted))
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Writes a new file beside the old one, and gives it the name. So a reader finds the old content or the new one. */
function replace(file: string, text: string, mode: number): void {
  let draft: string | undefined
  try {
    const target = realpathSync(file)
    draft = `${target}.${randomUUID()}`
    writeFileSync(draft, text, { flag: 'wx', mode: 0o600, flush: true })
    chmodSync(draft, mode & 0o777)
    renameSync(draft, target)
  } catch (cause) {
    if (draft !== undefined) rmSync(draft, { force: true })
    throw new ConfigFileError(file, `cannot be written: ${describeFailure(cause)}.`, { cause })
  }
}
