/** What uses a port of this machine, as far as it says so itself. */
import { z } from 'zod'
import { healthSchema } from '../protocol/rest.js'

/** The time limit of the request, in ms. */
const ANSWER_MS = 2000

/** How the port for client sockets answers a request. */
const socketPortSchema = z.object({ code: z.literal('UPGRADE_REQUIRED') })

/** @returns the task server at a port in words, such as `a task server 0.1.0`; undefined when another program, or none, is there */
export async function taskServerAt(host: string, port: number): Promise<string | undefined> {
  try {
    const name = host.includes(':') ? `[${host}]` : host
    const answer = await fetch(`http://${name}:${port}/health`, { signal: AbortSignal.timeout(ANSWER_MS) })
    const body: unknown = await answer.json()
    if (answer.status === 426 && socketPortSchema.safeParse(body).success) return 'the client socket of a task server'
    return `a task server ${healthSchema.parse(body).version}`
  } catch {
    return undefined
  }
}
