/** A Redis whose answers the test gives. It records what is sent, and identifies scripts by their names. */
import type { Redis } from 'ioredis'
import type { Script } from '../../src/bullmq/script.js'

/** A script that was sent. */
export interface SentScript {
  readonly script: string
  /** The values of its keys and arguments, by their names. */
  readonly values: Readonly<Record<string, unknown>>
  readonly further: readonly unknown[]
}

export interface ScriptedRedis {
  readonly redis: Redis
  readonly sent: readonly SentScript[]
  /** Returns the calls of one script. */
  readonly of: (script: string) => SentScript[]
}

/**
 * @param scripts the module that has the scripts
 * @param answer returns what Redis answers to a script
 * @param commands further commands of Redis
 */
export function scriptedRedis(
  scripts: object,
  answer: (sent: SentScript) => unknown,
  commands: object = {},
): ScriptedRedis {
  const sent: SentScript[] = []
  const evalsha = async (sha: string, _keys: number, ...values: unknown[]): Promise<unknown> => {
    const found = Object.entries(scripts as Record<string, Script>).find(([, script]) => script.sha === sha)
    if (found === undefined) throw new Error(`no script has the digest ${sha}`)
    const [name, { keys, args }] = found
    const names = [...keys, ...args]
    const one = {
      script: name,
      values: Object.fromEntries(names.map((each, at) => [each, values[at]])),
      further: values.slice(names.length),
    }
    sent.push(one)
    return answer(one)
  }
  return {
    redis: { status: 'ready', evalsha, ...commands } as unknown as Redis,
    sent,
    of: (script) => sent.filter((one) => one.script === script),
  }
}
