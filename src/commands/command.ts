/** Slash commands as plain data: any host can bind them to its own prompt. */
import { describeFailure } from '../protocol/outcomes.js'

/** What a command says to the person who typed it. */
export interface CommandResult {
  /** Whether it did what it was asked to. */
  readonly type: 'info' | 'error'
  /** What to show. */
  readonly text: string
}

/** A command, or a subcommand of one. */
export interface SlashCommand {
  /** Without the slash. */
  readonly name: string
  /** What it does, for the person who types. */
  readonly description: string
  /** Commands that follow its name. */
  readonly subcommands?: readonly SlashCommand[]
  /** Runs with what was typed after the name. Never throws. */
  run(args: string): CommandResult
  /** What the last word of `args` could become: names of subcommands, or ids. Never throws. */
  complete(args: string): string[]
}

/** What a command without subcommands is made of. */
export interface CommandDefinition {
  readonly name: string
  readonly description: string
  readonly run: (args: string) => CommandResult
  readonly complete?: (partial: string) => string[]
}

/** A command that takes its arguments itself. */
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

/** A command that hands its arguments to a subcommand; without arguments it runs `fallback`. */
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
 * Runs what a person typed, as in `/task end abc`.
 * @returns undefined for a line that is none of these commands
 */
export function runCommandLine(commands: readonly SlashCommand[], line: string): CommandResult | undefined {
  const [command, args] = parseLine(commands, line)
  return command?.run(args)
}

/** What the last word of a line could become; nothing for a line that is none of these commands. */
export function completeCommandLine(commands: readonly SlashCommand[], line: string): string[] {
  const [command, args] = parseLine(commands, line)
  return command?.complete(args) ?? []
}

function parseLine(commands: readonly SlashCommand[], line: string): [SlashCommand | undefined, string] {
  const [word, rest] = splitWord(line)
  return [commands.find(({ name }) => word === `/${name}`), rest]
}

/** The first word, what follows it, and whether anything can still be added to the word. */
function splitWord(text: string): [word: string, rest: string, isFinished: boolean] {
  const [, word = '', gap = '', rest = ''] = /^\s*(\S*)(\s*)([^]*)$/.exec(text) ?? []
  return [word, rest, gap !== '']
}
