/**
 * `npm start`: serves the demo instance as the environment says, and prints what to try. SIGTERM and SIGINT drain: running tasks get
 * `tasks.drainMs`, the rest end as cancelled, and the process exits with 0. A second signal does not wait.
 */
import { resolve } from 'node:path'
import { AgentTasksError } from '../errors.js'
import { startTaskServer, type TaskServer } from '../server/start-task-server.js'
import { createDemoInstance } from './demo-instance.js'

function introduce({ httpUrl, wsUrl, config }: TaskServer): string {
  const needsToken = config.auth.tokens.length > 0
  // The shell that is asked to paste has the variable, and the token is not printed.
  const header = needsToken ? ` -H "authorization: Bearer \${AUTH_TOKENS%%,*}"` : ''
  const token = needsToken ? `, token: process.env.AUTH_TOKENS.split(',')[0]` : ''
  const curl = `curl -s${httpUrl.startsWith('https') ? 'k' : ''} ${httpUrl}/tasks -H 'content-type: application/json'${header}`
  const add = { task_name: 'Add', commands: [{ tool_name: 'add', args: { a: 2, b: 3 } }] }
  // A certificate that nobody else vouches for: Node refuses it, unless it is told of it.
  const { certPath } = config.tls
  const trust = certPath === undefined ? '' : `NODE_EXTRA_CA_CERTS='${resolve(certPath)}' `
  const program = [
    `import { createTaskClient } from 'agent-tasks/client'`,
    `const client = createTaskClient({ url: '${httpUrl}'${token} })`,
    `const { taskId } = await client.submit({ task_name: 'Slow', commands: [{ tool_name: 'slow', args: { seconds: 3, steps: 3 } }] })`,
    `for await (const { type, status, progress } of client.watch(taskId)) console.log(type, status, progress ?? '')`,
    `await client.close()`,
  ]
  return [
    `REST at ${httpUrl} (try it at ${httpUrl}/docs), sockets at ${wsUrl}. The instance "calc" has the tools add, echo and slow.`,
    '',
    'Submit a task:',
    `  ${curl} -d '${JSON.stringify(add)}'`,
    '',
    'Submit one and follow it:',
    `  ${trust}node --input-type=module -e "${program.join('; ')}"`,
    '',
  ].join('\n')
}

function stopOnSignals(server: TaskServer): void {
  let isStopping = false
  const stop = (): void => {
    if (isStopping) process.exit(1)
    isStopping = true
    server.close().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error)
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop).on('SIGINT', stop)
}

try {
  const server = await startTaskServer({ instances: [createDemoInstance()] })
  stopOnSignals(server)
  console.log(introduce(server))
} catch (error) {
  console.error(error instanceof AgentTasksError ? `agent-tasks: ${error.message}` : error)
  process.exitCode = 1
}
