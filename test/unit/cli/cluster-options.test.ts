// The options of `serve` that make it one of several servers.
import { describe, expect, it } from 'vitest'
import { readCluster } from '../../../src/cli/cluster-options.js'

describe('the options of a cluster', () => {
  it('make a cluster, from the command line or the environment', async () => {
    expect(await readCluster({}, {})).toBeUndefined()
    expect(await readCluster({}, { TASKS_CONNECTION: '' })).toBeUndefined()
    expect(await readCluster({}, { TASKS_CONNECTION: 'redis://127.0.0.1' })).toHaveProperty('join')
    const flags = { connection: 'redis://10.0.0.1', redisWithoutPassword: true, cluster: 'c', publicUrl: 'https://x' }
    expect(await readCluster(flags, {})).toHaveProperty('join')
  })

  it('are refused without a connection, and when they are wrong', async () => {
    await expect(readCluster({ cluster: 'c' }, {})).rejects.toThrow('--cluster: got "c"')
    await expect(readCluster({ redisWithoutPassword: true }, {})).rejects.toThrow('--redis-without-password')
    const connection = 'redis://127.0.0.1'
    await expect(readCluster({ connection, publicUrl: 'ftp://x' }, {})).rejects.toThrow('options.publicUrl')
    await expect(readCluster({ connection, cluster: 'a b' }, {})).rejects.toThrow('options.name')
    await expect(readCluster({ connection: 'redis://10.0.0.1' }, {})).rejects.toThrow('a Redis with a password')
  })
})
