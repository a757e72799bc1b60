/** `agent-tasks worker`: runs subagents for tasks that servers send over Redis. */
import type { Command } from 'commander'
import { disposeOnSignals } from '../engine/dispose-on-signals.js'
import { createLog } from '../server/http/log.js'
import { loadTrustedConfig } from '../mcp/config-file.js'
import { loadBullmq } from './load-bullmq.js'
import { readInteger } from './numbers.js'
import type { ProgramIO } from './terminal.js'
import { workersAccess, workerSubagents } from './worker-subagents.js'

interface WorkerCommandOptions {
  readonly connection?: string
  readonly config?: string
  readonly concurrency?: string
}

export function addWorkerCommand(program: Command, io: ProgramIO): void {
  program
    .command('worker')
    .description('run the tasks of subagents with "runsOn": "workers", which servers send over Redis')
    .option(
      '--connection <url>',
      'the Redis: redis:// or rediss:// (default: workers.connection, or AGENT_TASKS_CONNECTION)',
    )
    .option(
      '--config <file>',
      'the subagents (default: agent-tasks.config.json, once `agent-tasks mcp --trust` has trusted it)',
    )
    .option('--concurrency <n>', 'how many tasks of each subagent run at once (default: workers.concurrency, or 1)')
    .addHelpText(
      'after',
      `
Who can write to the Redis can run these programs with any goal: give it a password. SIGTERM and Ctrl-C end the worker after what it runs has
ended, or after workers.drainSeconds; a second one ends it at once.

Examples:
  $ AGENT_TASKS_CONNECTION=rediss://:secret@redis.example agent-tasks worker --config /path/to/agent-tasks.config.json
  $ agent-tasks worker --connection redis://localhost --concurrency 4`,
    )
    .action(async (options: WorkerCommandOptions) => {
      const { config, folder } = loadTrustedConfig(options.config, io.env)
      const subagents = workerSubagents(config, folder)
      const access = workersAccess(config, io.env, options.connection)
      const { lockMs, drainSeconds } = config.workers
      const concurrency =
        options.concurrency === undefined
          ? config.workers.concurrency
          : readInteger('--concurrency', options.concurrency, 1, 1000)
      const { startWorker } = await loadBullmq(() => import('../bullmq/start-worker.js'))
      const log = createLog('info', (line) => void io.stderr.write(`${line}\n`))
      const worker = await startWorker({
        ...access,
        subagents,
        concurrency,
        lockMs,
        ...(drainSeconds !== undefined && { drainMs: drainSeconds * 1000 }),
        log: (line) => log('info', line),
      })
      disposeOnSignals(() => worker.drain(), { exitCode: 0, limitMs: Infinity })
    })
}
