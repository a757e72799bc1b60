/** Lua scripts. Redis runs each script atomically, also if it uses several keys. */
import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'

export interface Script<Key extends string = string, Argument extends string = string> {
  readonly lua: string
  /** The SHA-1 digest by which Redis finds the script in its cache. */
  readonly sha: string
  /** The names of the keys and of the arguments, in order. */
  readonly keys: readonly Key[]
  readonly args: readonly Argument[]
}

export type Named<Name extends string, Value> = Readonly<Record<Name, Value>>

export type ScriptValue = string | number

/**
 * Defines a script.
 * @param keys the names of the keys
 * @param args the names of the arguments; a call may pass further arguments after them
 * @param body the Lua code, which reads each key and each argument from a local variable of the same name
 */
export function script<Key extends string, Argument extends string>(
  keys: readonly Key[],
  args: readonly Argument[],
  body: string,
): Script<Key, Argument> {
  const lua = `${locals(keys, 'KEYS')}${locals(args, 'ARGV')}${body}`
  return { keys, args, lua, sha: createHash('sha1').update(lua).digest('hex') }
}

const locals = (names: readonly string[], from: string): string =>
  names.length === 0 ? '' : `local ${names.join(', ')} = unpack(${from}, 1, ${names.length})\n`

/**
 * Runs a script. If Redis does not have the script in its cache yet, the script is sent a second time, with its text. Two scripts in a row can
 * therefore overtake each other: await the first one if their order matters.
 * @param further arguments after the named ones, for scripts that take any number of arguments
 * @returns the reply; rejects when Redis cannot be reached and the connection does not let commands wait
 */
export async function runScript<Key extends string, Argument extends string>(
  redis: Redis,
  { lua, sha, keys: keyNames, args: argumentNames }: Script<Key, Argument>,
  keys: Named<Key, string>,
  args: Named<Argument, ScriptValue>,
  further: readonly ScriptValue[] = [],
): Promise<unknown> {
  const values = [...keyNames.map((name) => keys[name]), ...argumentNames.map((name) => args[name]), ...further]
  try {
    return await redis.evalsha(sha, keyNames.length, ...values)
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return redis.eval(lua, keyNames.length, ...values)
  }
}
