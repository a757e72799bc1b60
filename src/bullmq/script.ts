/** Lua scripts, which Redis runs atomically on several keys. */
import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'

/** A script in Lua. */
export interface Script<Key extends string = string, Argument extends string = string> {
  readonly lua: string
  /** The digest by which Redis knows it. */
  readonly sha: string
  /** The names of its keys and of its arguments, in order. */
  readonly keys: readonly Key[]
  readonly args: readonly Argument[]
}

/** A value for each name. */
export type Named<Name extends string, Value> = Readonly<Record<Name, Value>>

/** The types of an argument. */
export type ScriptValue = string | number

/**
 * @param keys the names of its keys
 * @param args the names of its arguments; the script may take further values after them
 * @param body its text, in which keys and arguments are local variables of these names
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
 * Runs a script. Scripts that must keep their order wait for each other, because one that Redis does not know yet is sent twice.
 * @param further values after the named ones, where the script takes any number
 * @returns the reply; rejects when Redis is away and the connection does not wait
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
