/**
 * The token of a run. It is in the environment of the run's program and of every process that the program starts, so they are found also after they
 * have left the process group of the program.
 */

export const RUN_TOKEN = 'AGENT_TASKS_RUN'

/** The form of a token: one part for each host, the outermost first. */
const TOKEN = /^[0-9a-f-]{1,64}(\/[0-9a-f-]{1,64})*$/

/**
 * Creates the token of a new run. If this process belongs to a run itself, the token continues that of the outer run like a path. So the outer host
 * ends the processes of this run as well.
 */
export function newRunToken(outer = process.env[RUN_TOKEN]): string {
  const own = globalThis.crypto.randomUUID()
  return isToken(outer) ? `${outer}/${own}` : own
}

export const isToken = (value: unknown): value is string => typeof value === 'string' && TOKEN.test(value)

/**
 * Whether an environment, as /proc shows it, has the token of a run, or that of a run inside this run. Only a whole entry counts: the text of the entry
 * may also be part of another variable.
 */
export function hasToken(environment: string, token: string): boolean {
  if (token === '') return false
  const entries = `\0${environment}\0`
  const entry = `\0${RUN_TOKEN}=${token}`
  return entries.includes(`${entry}\0`) || entries.includes(`${entry}/`)
}
