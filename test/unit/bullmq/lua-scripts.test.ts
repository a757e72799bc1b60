// The scripts that Redis runs, as they are in the modules.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import * as clusterScripts from '../../../src/bullmq/cluster/cluster-scripts.js'
import * as jobScripts from '../../../src/bullmq/job-scripts.js'
import { runScript, script, type Script } from '../../../src/bullmq/script.js'

const all: [string, Script][] = Object.entries({ ...jobScripts, ...clusterScripts })

describe('the scripts', () => {
  it('touch the keys and fields of BullMQ in bullmq-layout.ts alone', () => {
    const known =
      /:(?:wait|active|lock|stalled|completed|failed)\b|processedOn|finishedOn|returnvalue|failedReason|'stc'/
    const files = readdirSync('src/bullmq', { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.ts') && known.test(readFileSync(join('src/bullmq', name), 'utf8')),
    )
    expect(files).toEqual(['bullmq-layout.ts'])
  })

  it.each(all)('%s names each of its keys and arguments once, and uses them', (_name, { keys, args, lua }) => {
    expect(new Set([...keys, ...args]).size).toBe(keys.length + args.length)
    for (const name of [...keys, ...args]) {
      expect(lua.match(new RegExp(`\\b${name}\\b`, 'g'))?.length, name).toBeGreaterThan(1)
    }
  })
})

describe('a script', () => {
  const one = script(['from', 'to'], ['count', 'text'], 'return 1')
  const call = (answer: (what: 'evalsha' | 'eval') => Promise<unknown>) => {
    const sent: unknown[][] = []
    const command =
      (what: 'evalsha' | 'eval') =>
      (...args: unknown[]) => {
        sent.push([what, ...args])
        return answer(what)
      }
    const redis = { evalsha: command('evalsha'), eval: command('eval') } as unknown as Redis
    return { sent, ran: runScript(redis, one, { to: 't', from: 'f' }, { text: 'x', count: 2 }, ['more', 3]) }
  }

  it('gets its keys, its arguments and what follows in its order, whatever the order of the names', async () => {
    const { sent, ran } = call(() => Promise.resolve('done'))
    expect(await ran).toBe('done')
    expect(sent).toEqual([['evalsha', one.sha, 2, 'f', 't', 2, 'x', 'more', 3]])
  })

  it('is sent as a text when Redis does not know it, with the same values', async () => {
    const unknown = new Error('NOSCRIPT No matching script. Please use EVAL.')
    const { sent, ran } = call((what) => (what === 'evalsha' ? Promise.reject(unknown) : Promise.resolve('done')))
    expect(await ran).toBe('done')
    expect(sent[1]).toEqual(['eval', one.lua, 2, 'f', 't', 2, 'x', 'more', 3])
  })

  it('has its keys and arguments as local variables', () => {
    expect(one.lua).toBe('local from, to = unpack(KEYS, 1, 2)\nlocal count, text = unpack(ARGV, 1, 2)\nreturn 1')
    expect(script([], [], 'return 1').lua).toBe('return 1')
  })

  it.each([new Error('OOM command not allowed'), 'NOSCRIPT'])('fails as Redis does: %s', async (failure) => {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- what is thrown may be anything
    const { sent, ran } = call(() => Promise.reject(failure))
    await expect(ran).rejects.toBe(failure)
    expect(sent).toHaveLength(1)
  })
})
