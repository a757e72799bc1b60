/** Scripts that Redis runs: each reads and changes several keys as one step. */
import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'

/** A script in Lua. */
export interface Script {
  readonly lua: string
  /** What Redis knows it by. */
  readonly sha: string
}

/** @param lua its text */
export const script = (lua: string): Script => ({ lua, sha: createHash('sha1').update(lua).digest('hex') })

/**
 * Runs a script. Scripts that must keep an order wait for each other: one that Redis does not know yet is sent a second time.
 * @returns what it returns; rejects when Redis is away and the connection does not wait
 */
export async function runScript(
  redis: Redis,
  { lua, sha }: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(sha, keys.length, ...keys, ...args)
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return redis.eval(lua, keys.length, ...keys, ...args)
  }
}
