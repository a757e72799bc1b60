/** `--instance name='command args'`: an MCP server that `serve` starts, or connects to when it is a URL. */
import { parseArgsStringToArgv } from 'string-argv'
import { InvalidInputError } from '../errors.js'
import type { MCPInstanceOptions } from '../instances/mcp-instance.js'

/**
 * @param value `name=command args` or `name=http://...`; of a shell's syntax only quotes are supported
 * @throws InvalidInputError
 */
export function parseInstanceOption(value: string): MCPInstanceOptions {
  const [, id = '', target = ''] = /^([\w.:-]+)=(.*)$/s.exec(value.trim()) ?? []
  if (id === '') throw new InvalidInputError('--instance', value, `name='command args' or name=http://host/path`)
  if (/^https?:\/\//i.test(target)) return { id, url: target }
  // A URL of another scheme is never the name of a program.
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(target)) throw new InvalidInputError('--instance', value, 'an http or https URL')
  const [command, ...args] = parseArgsStringToArgv(target)
  if (command === undefined) throw new InvalidInputError('--instance', value, `a command or a URL after ${id}=`)
  return { id, command, args }
}

/** @throws InvalidInputError when two have the same name */
export function parseInstanceOptions(values: readonly string[]): MCPInstanceOptions[] {
  const parsed = values.map(parseInstanceOption)
  const names = new Set<string>()
  for (const { id } of parsed) {
    if (names.has(id)) throw new InvalidInputError('--instance', id, 'a name that is not used twice')
    names.add(id)
  }
  return parsed
}
