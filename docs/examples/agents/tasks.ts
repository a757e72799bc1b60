/** The background tasks of the example agents: two programs. */
import { createAgentTasks, processRunner, type AgentTasksOptions } from 'agent-tasks'

const countPrimes = `
const isPrime = (n) => { for (let d = 2; d * d <= n; d += 1) if (n % d === 0) return false; return n > 1 }
const limit = Number(process.argv[1])
let count = 0
for (let n = 0; n < limit; n += 1) if (isPrime(n)) count += 1
console.log(count + ' primes below ' + limit)
`

const digest = `
const { createHash } = await import('node:crypto')
console.log('sha256 ' + createHash('sha256').update(process.argv[1]).digest('hex'))
`

/** {goal} is the goal of the task, as one argument without a shell. */
const node = (program: string) =>
  processRunner({ command: process.execPath, args: ['--input-type=module', '-e', program, '--', '{goal}'] })

export const createTasks = (options: AgentTasksOptions = {}) =>
  createAgentTasks({ subagents: { mathematician: node(countPrimes), notary: node(digest) }, ...options })
