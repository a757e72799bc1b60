/** The text that a program or agent gets for its task. A function gets the fields of its input instead. */
import type { RunInput } from '../engine/runner.js'
import type { RunFields } from '../protocol/run-fields.js'

/** The input of a run, with what its launch has given besides the goal. */
export type Instruction = RunInput & RunFields

/** Writes the goal, and below it the instructions, tools, expected outputs and context of the launch, if it has any. */
export function instructionText(input: Instruction): string {
  const { goal, behaviourPrompts = [], toolWhitelist = [], expectedOutputs = {}, context = {} } = input
  return [
    goal,
    ...section('Instructions:', behaviourPrompts),
    ...section('Use only these tools:', toolWhitelist),
    ...section('Return:', linesOf(expectedOutputs)),
    ...section('Context:', linesOf(context)),
  ].join('\n\n')
}

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [`${title}\n${lines.map((line) => `- ${line}`).join('\n')}`]

const linesOf = (fields: Readonly<Record<string, unknown>>): string[] =>
  Object.entries(fields).map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
