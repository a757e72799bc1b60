/** The contract of the types of `agent-tasks/bullmq`. */
import type { RedisAccess, RedisFinding } from 'agent-tasks/bullmq'

const access: RedisAccess = {
  connection: 'redis://localhost',
  allowNoPassword: true,
  log: (line: string) => console.log(line),
}
const withOptions: RedisAccess = { connection: { host: 'localhost', port: 6379 } }
// @ts-expect-error where Redis is must be said
const nowhere: RedisAccess = {}
// @ts-expect-error a port alone is no connection
const port: RedisAccess = { connection: 6379 }
declare const finding: RedisFinding
const state: 'ok' | 'note' | 'lossy' | 'unusable' = finding.state
export const used = [access, withOptions, nowhere, port, state]
