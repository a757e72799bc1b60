/** The text that `serve` prints when it listens: its URLs, and example commands to paste. */
import { resolve } from 'node:path'
import type { TaskServer } from '../server/start-task-server.js'

/**
 * @param instances the ids of the connected instances
 * @param pageUrl the URL of the page, with its token
 */
export function introduce(
  { httpUrl, wsUrl, config }: TaskServer,
  instances: readonly string[],
  pageUrl?: string,
): string {
  const page = pageUrl === undefined ? '' : `\nThe page, to see what runs: ${pageUrl}`
  const where = `REST at ${httpUrl} (try it at ${httpUrl}/docs), sockets at ${wsUrl}.`
  if (instances.includes('calc')) {
    return [
      `${where} The instance "calc" has the tools add, echo and slow.${page}`,
      '',
      ...examples(httpUrl, config),
    ].join('\n')
  }
  const known = instances.length === 0 ? 'No instance is connected yet.' : `Instances: ${instances.join(', ')}.`
  return `${where} ${known}${page}`
}

function examples(httpUrl: string, config: TaskServer['config']): string[] {
  const needsToken = config.auth.tokens.length > 0
  // The example refers to the variable, which the user's shell has, so that the token is not printed.
  const header = needsToken ? ` -H "authorization: Bearer \${AUTH_TOKENS%%,*}"` : ''
  const token = needsToken ? `, token: process.env.AUTH_TOKENS.split(',')[0]` : ''
  const curl = `curl -s${httpUrl.startsWith('https') ? 'k' : ''} ${httpUrl}/tasks -H 'content-type: application/json'${header}`
  const add = { task_name: 'Add', commands: [{ tool_name: 'add', args: { a: 2, b: 3 } }] }
  // Node rejects a self-signed certificate, unless the variable NODE_EXTRA_CA_CERTS names its file.
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
    'Submit a task:',
    `  ${curl} -d '${JSON.stringify(add)}'`,
    '',
    'Submit one and follow it:',
    `  ${trust}node --input-type=module -e "${program.join('; ')}"`,
    '',
  ]
}
