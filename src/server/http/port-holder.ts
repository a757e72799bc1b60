/** Finds out whether a task server uses a port of this machine, with an HTTP request to the port. */
import { z } from 'zod'
import { healthSchema } from '../../protocol/rest.js'

/** The time limit of the request, in ms. */
const ANSWER_MS = 2000

/** The answer of the port for client sockets to an HTTP request. */
const socketPortSchema = z.object({ code: z.literal('UPGRADE_REQUIRED') })

/** @returns what uses the port, such as `a task server 0.1.0`; undefined when it is not a task server */
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
