/** `agent-tasks worker` as a process, and a server's subagents that run on it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { runProgram } from '../../src/cli/program.js'
import { sentSubagents } from '../../src/cli/worker-subagents.js'
import { createAgentTasks } from '../../src/host/agent-tasks.js'
import { loadAgentConfig } from '../../src/mcp/config-file.js'
import { startRedis, type RedisServerOptions } from '../support/redis-server.js'

const main = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url))

async function setUp(options?: RedisServerOptions) {
  const redis = await startRedis(options)
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-worker-'))
  onTestFinished(async () => {
    await redis.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const file = join(folder, 'agent-tasks.config.json')
  const subagents = [
    {
      name: 'shell',
      description: 'runs a goal',
      command: 'sh',
      runsOn: 'workers',
      args: ['-c', 'echo "$AGENT_TASK_NAME: $1"; sleep 0.5', 'sh', '{goal}'],
    },
  ]
  writeFileSync(file, JSON.stringify({ subagents, workers: { connection: redis.url, lockMs: 5000 } }))
  return { redis, file }
}

async function doctor(file: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  let stdout = ''
  const write = (text: string): boolean => {
    stdout += text
    return true
  }
  const stream = { isTTY: false, columns: 100, write }
  const io = { stdout: stream, stderr: stream, env, readStdin: () => Promise.resolve('') }
  await runProgram(['doctor', '--config', file], io, '1.2.3')
  return stdout
}

describe('agent-tasks worker', () => {
  it('W4: runs what servers send with the same file, and ends after what it runs on SIGTERM', async () => {
    const { file } = await setUp()
    const worker = spawn(process.execPath, [main, 'worker', '--config', file], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const exited = once(worker, 'exit')
    onTestFinished(async () => {
      worker.kill('SIGKILL')
      await exited
    })
    let errors = ''
    await new Promise<void>((resolve) => {
      worker.stderr.on('data', (chunk: Buffer) => {
        errors += chunk.toString()
        if (errors.includes('connected to Redis')) resolve()
      })
    })
    const { config } = loadAgentConfig(file)
    const tasks = createAgentTasks({ subagents: await sentSubagents(config, {}, () => undefined) })
    onTestFinished(() => tasks.dispose())
    const call = tasks.tools.task.execute({ subagent_name: 'shell', goal_prompt: 'the goal' })
    const manager = tasks.getAsyncTaskManager()
    const isRunning = (): boolean =>
      manager.getRunningTasks().some(({ id }) => manager.readOutput(id)?.text.includes('shell: the goal') === true)
    while (!isRunning()) await new Promise((resolve) => setTimeout(resolve, 10))
    worker.kill('SIGTERM')
    expect(JSON.stringify(await call)).toContain('shell: the goal')
    expect((await exited)[0]).toBe(0)
    expect(errors).toContain('Worker of shell: connected to Redis at 127.0.0.1:')
  })

  it('is checked by doctor, which says what is lost', async () => {
    const { file, redis } = await setUp({ appendfsync: 'no file', maxmemoryPolicy: 'allkeys-lru' })
    const found = await doctor(file)
    expect(found).toMatch(/ok {7}Redis, version: Redis \d/)
    expect(found).toMatch(
      /note {5}Redis, maxmemory-policy: The policy is allkeys-lru: .* deletes tasks that it has accepted/,
    )
    expect(found).toMatch(/note {5}Redis, appendonly: There is no append-only file/)
    await redis.kill()
    expect(await doctor(file)).toMatch(/missing {2}Redis: Redis at 127\.0\.0\.1:\d+: .*ECONNREFUSED/)
  })

  it('is checked by doctor where only the environment names it, as for a cluster of servers', async () => {
    const { file, redis } = await setUp({ appendfsync: 'everysec', password: 'secret' })
    writeFileSync(file, '{}')
    expect(await doctor(file)).not.toContain('Redis, version')
    const found = await doctor(file, { AGENT_TASKS_CONNECTION: redis.url })
    expect(found).toMatch(/ok {7}Redis, version: Redis \d/)
    expect(found).toMatch(/note {5}Redis, appendfsync: everysec: the writes of up to two seconds are lost/)
    const refused = await doctor(file, { AGENT_TASKS_CONNECTION: redis.url.replace('secret', 'other-secret') })
    expect(refused).toMatch(/missing {2}Redis: Redis at 127\.0\.0\.1:\d+: WRONGPASS/)
    expect(refused).not.toContain('other-secret')
  })
})
