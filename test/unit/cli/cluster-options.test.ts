// The options of `serve` that make it one of several servers, and those of `mcp` that make it use them.
import { describe, expect, it } from 'vitest'
import { agentConfigSchema } from '../../../src/protocol/agent-config.js'
import { readCluster, readClusterTasks } from '../../../src/cli/cluster-options.js'

describe('the options of a cluster', () => {
  it('make a cluster, from the command line or the environment', async () => {
    expect(await readCluster({}, {})).toBeUndefined()
    expect(await readCluster({}, { TASKS_CONNECTION: '' })).toBeUndefined()
    expect(await readCluster({}, { TASKS_CONNECTION: 'redis://127.0.0.1' })).toHaveProperty('join')
    expect(await readCluster({}, { AGENT_TASKS_CONNECTION: 'redis://127.0.0.1' })).toHaveProperty('join')
    const both = { TASKS_CONNECTION: 'redis://10.0.0.1', AGENT_TASKS_CONNECTION: 'redis://127.0.0.1' }
    await expect(readCluster({}, both)).rejects.toThrow('10.0.0.1')
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

  it('are used by mcp when it is told to, with the Redis of the command line, the file or the environment', async () => {
    const config = agentConfigSchema.parse({})
    const inFile = agentConfigSchema.parse({ workers: { connection: 'redis://127.0.0.1', allowNoPassword: true } })
    const env = { AGENT_TASKS_CONNECTION: 'redis://127.0.0.1' }
    const log = (): void => undefined
    expect(await readClusterTasks({}, inFile, env, log)).toBeUndefined()
    expect(await readClusterTasks({ cluster: true }, config, env, log)).toHaveProperty('followTask')
    expect(await readClusterTasks({ cluster: 'c' }, inFile, {}, log)).toHaveProperty('followTask')
    expect(await readClusterTasks({ connection: 'redis://127.0.0.1' }, config, {}, log)).toHaveProperty('followTask')
    await expect(readClusterTasks({ cluster: true }, config, {}, log)).rejects.toThrow(
      'the URL of a Redis, because --cluster is given (or --connection, or AGENT_TASKS_CONNECTION)',
    )
    await expect(readClusterTasks({ cluster: 'a b' }, config, env, log)).rejects.toThrow('options.name')
  })
})
