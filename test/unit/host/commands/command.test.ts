/** Slash commands: running and completing lines without throwing. */
import { describe, expect, it, vi } from 'vitest'
import {
  completeCommandLine,
  defineCommand,
  groupCommands,
  runCommandLine,
  type CommandResult,
} from '../../../../src/host/commands/command.js'

function setUp() {
  const run = vi.fn((args: string): CommandResult => ({ type: 'info', text: `shown ${args}` }))
  const show = defineCommand({
    name: 'show',
    description: 'Shows',
    run,
    complete: (partial) => ['red', 'green', 'grey'].filter((colour) => colour.startsWith(partial)),
  })
  const broken = defineCommand({
    name: 'shout',
    description: 'Breaks',
    run: () => {
      throw new Error('too loud')
    },
    complete: () => {
      throw new Error('too loud')
    },
  })
  const group = groupCommands({
    name: 'paint',
    description: 'Paints',
    usage: 'Usage: /paint show <colour>',
    subcommands: [show, broken],
  })
  const withFallback = groupCommands({ ...group, name: 'p', usage: 'Usage: /p', subcommands: [show], fallback: show })
  return { run, show, commands: [group, withFallback] }
}

describe('a command line', () => {
  it.each([
    ['/paint show red', 'red'],
    ['  /paint   show   dark red  ', 'dark red'],
    ['/paint show', ''],
    ['/p', ''],
    ['/p show green', 'green'],
  ])('%j runs its command with the rest of the line', (line, args) => {
    const { run, commands } = setUp()
    expect(runCommandLine(commands, line)).toEqual({ type: 'info', text: `shown ${args}` })
    expect(run).toHaveBeenCalledWith(args)
  })

  it.each(['', '   ', 'paint show', '/', '/painting', '/pai', 'hello /paint'])('%j is not a command', (line) => {
    const { run, commands } = setUp()
    expect(runCommandLine(commands, line)).toBeUndefined()
    expect(completeCommandLine(commands, line)).toEqual([])
    expect(run).not.toHaveBeenCalled()
  })

  it('without a subcommand, or with an unknown one, returns the usage', () => {
    const { run, commands } = setUp()
    expect(runCommandLine(commands, '/paint')).toEqual({ type: 'error', text: 'Usage: /paint show <colour>' })
    expect(runCommandLine(commands, '/paint wall red')).toEqual({
      type: 'error',
      text: 'Unknown subcommand: wall\nUsage: /paint show <colour>',
    })
    expect(runCommandLine(commands, '/p wall')).toEqual({ type: 'error', text: 'Unknown subcommand: wall\nUsage: /p' })
    expect(run).not.toHaveBeenCalled()
  })

  it('whose command throws returns an error', () => {
    expect(runCommandLine(setUp().commands, '/paint shout')).toEqual({ type: 'error', text: 'shout failed: too loud' })
  })
})

describe('completion', () => {
  it.each([
    ['/paint ', ['show', 'shout']],
    ['/paint sho', ['show', 'shout']],
    ['/paint show', ['show']],
    ['/paint show ', ['red', 'green', 'grey']],
    ['/paint show  gr', ['green', 'grey']],
    ['/paint show x', []],
    ['/paint wall ', []],
    ['/paint shout ', []],
  ])('of %j is %j', (line, expected) => {
    expect(completeCommandLine(setUp().commands, line)).toEqual(expected)
  })

  it('of a command alone ignores white space before the word, and keeps what follows it', () => {
    const { show } = setUp()
    expect(show.complete('  gr')).toEqual(['green', 'grey'])
    expect(show.complete('green ')).toEqual([])
    expect(
      defineCommand({ name: 'n', description: 'd', run: () => ({ type: 'info', text: '' }) }).complete(''),
    ).toEqual([])
  })
})
