/** The description of an option that is a tool: a name, and a function that runs it. */
import { z } from 'zod'
import { aFunction, aName, anything, entryCheck, hasMethods, isRecord, optionType, required } from './option-checks.js'

const issuesOfTool = entryCheck({
  name: required(aName),
  execute: required(aFunction),
  description: anything,
  inputSchema: anything,
  // Tools of `agent-tasks/tools` have this function, too. It describes a call in words.
  describe: anything,
})

const isTool = (value: unknown): boolean =>
  isRecord(value) &&
  typeof value['name'] === 'string' &&
  value['name'] !== '' &&
  typeof value['execute'] === 'function' &&
  (value['inputSchema'] === undefined || hasMethods(value['inputSchema'], ['safeParseAsync']))

export const aTool = optionType('a tool: { name, execute, inputSchema?: a zod schema }', (error) =>
  z.custom(isTool, { error }).check(({ value, issues }) => void issues.push(...issuesOfTool(value))),
)
