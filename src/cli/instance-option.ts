/** Reads the option `--instance name='command args'`. It names an MCP server that `serve` starts, or that `serve` connects to if the value is a URL. */
import { parseArgsStringToArgv } from 'string-argv'
import { InvalidInputError } from '../errors.js'
import type { MCPInstanceOptions } from '../command-tasks/instances/mcp-instance.js'

/**
 * @param value `name=command args` or `name=http://...`; quotes are supported, other syntax of a shell is not
 * @throws INVALID_INPUT for an invalid value
 */
export function parseInstanceOption(value: string): MCPInstanceOptions {
  const [, id = '', target = ''] = /^([\w.:-]+)=(.*)$/s.exec(value.trim()) ?? []
  if (id === '') throw new InvalidInputError('--instance', value, `name='command args' or name=http://host/path`)
  if (/^https?:\/\//i.test(target)) return { id, url: target }
  // The name of a program never begins with the scheme of a URL.
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(target)) throw new InvalidInputError('--instance', value, 'an http or https URL')
  const [command, ...args] = parseArgsStringToArgv(target)
  if (command === undefined) throw new InvalidInputError('--instance', value, `a command or a URL after ${id}=`)
  return { id, command, args }
}

/** @throws INVALID_INPUT for an invalid value, or when two instances have the same name */
export function parseInstanceOptions(values: readonly string[]): MCPInstanceOptions[] {
  const parsed = values.map(parseInstanceOption)
  const names = new Set<string>()
  for (const { id } of parsed) {
    if (names.has(id)) throw new InvalidInputError('--instance', id, 'a different name for each instance')
    names.add(id)
  }
  return parsed
}
