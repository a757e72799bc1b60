/** Slash commands as plain objects. A host connects them to its own prompt. */
import type { AsyncTaskManager } from '../../async-tasks/manager.js'
import { describeFailure } from '../../protocol/outcomes.js'

/** Options of `createTaskCommands`. */
export interface TaskCommandsOptions {
  /** Returns the task manager. Each command calls this function. */
  readonly getAsyncTaskManager: () => AsyncTaskManager
  /** The owner whose tasks the commands show and change. Default: the tasks of all owners. */
  readonly owner?: string
  /** The owner that `/pause` pauses. Default: `owner`, or `main`. */
  readonly pausedOwner?: string
}

/** The maximum length of a list, in characters. */
export const LIST_CHARS = 18_000

/** The output of a command. */
export interface CommandResult {
  /** `error` when the command failed. */
  readonly type: 'info' | 'error'
  /** The text to show. */
  readonly text: string
}

/** A command or subcommand. */
export interface SlashCommand {
  /** The name without the slash. */
  readonly name: string
  /** A description for the user. */
  readonly description: string
  /** Its subcommands. */
  readonly subcommands?: readonly SlashCommand[]
  /** Runs the command. `args` is the text after its name. Never throws. */
  run(args: string): CommandResult
  /** Returns completions of the last word of `args`: names of subcommands, or ids. Never throws. */
  complete(args: string): string[]
}

/** A command without subcommands. */
export interface CommandDefinition {
  readonly name: string
  readonly description: string
  readonly run: (args: string) => CommandResult
  readonly complete?: (partial: string) => string[]
}

/** Creates a command without subcommands. */
export function defineCommand({ name, description, run, complete }: CommandDefinition): SlashCommand {
  return {
    name,
    description,
    run: (args) => {
      try {
        return run(args.trim())
      } catch (error) {
        return { type: 'error', text: `${name} failed: ${describeFailure(error)}` }
      }
    },
    complete: (args) => {
      try {
        return complete?.(args.trimStart()) ?? []
      } catch {
        return []
      }
    },
  }
}

/** Creates a command with subcommands. Without arguments, the command runs `fallback`. */
export function groupCommands(group: {
  readonly name: string
  readonly description: string
  readonly usage: string
  readonly subcommands: readonly SlashCommand[]
  readonly fallback?: SlashCommand
}): SlashCommand {
  const { name, description, usage, subcommands, fallback } = group
  const find = (word: string): SlashCommand | undefined => subcommands.find((command) => command.name === word)
  return {
    name,
    description,
    subcommands,
    run: (args) => {
      const [word, rest] = splitWord(args)
      const command = word === '' ? fallback : find(word)
      if (command !== undefined) return command.run(rest)
      return { type: 'error', text: word === '' ? usage : `Unknown subcommand: ${word}\n${usage}` }
    },
    complete: (args) => {
      const [word, rest, isFinished] = splitWord(args)
      if (isFinished) return find(word)?.complete(rest) ?? []
      return subcommands.map((command) => command.name).filter((known) => known.startsWith(word))
    },
  }
}

/**
 * Runs a line such as `/task end abc`.
 * @returns undefined if the line does not start with one of the commands
 */
export function runCommandLine(commands: readonly SlashCommand[], line: string): CommandResult | undefined {
  const [command, args] = parseLine(commands, line)
  return command?.run(args)
}

/** Returns completions of the last word of a line. Returns an empty array if the line does not start with one of the commands. */
export function completeCommandLine(commands: readonly SlashCommand[], line: string): string[] {
  const [command, args] = parseLine(commands, line)
  return command?.complete(args) ?? []
}

function parseLine(commands: readonly SlashCommand[], line: string): [SlashCommand | undefined, string] {
  const [word, rest] = splitWord(line)
  return [commands.find(({ name }) => word === `/${name}`), rest]
}

/** Splits a text into its first word and the rest. `isFinished` is true if white space follows the word. */
export function splitWord(text: string): [word: string, rest: string, isFinished: boolean] {
  const [, word = '', gap = '', rest = ''] = /^\s*(\S*)(\s*)([^]*)$/.exec(text) ?? []
  return [word, rest, gap !== '']
}
