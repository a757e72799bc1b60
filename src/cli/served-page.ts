/** The page of a command that serves tasks. */
import { omitUndefined } from '../data/omit-undefined.js'
import { InvalidInputError, InvalidSettingError } from '../errors.js'
import type { TaskPage, TaskPageOptions } from '../page/create-task-page.js'
import { tokenOfFile } from '../page/token-file.js'
import { checkTraceUrl } from '../page/trace-link.js'
import { readInteger } from './numbers.js'

export interface PageSettings {
  /** The port. If it is undefined: the default port, or a free port if another program uses the default port. */
  readonly port: number | undefined
  readonly tokenFile: string | undefined
  readonly traceUrl: string | undefined
}

/** The options of a command that concern its page, except the port. */
export interface PageFlags {
  readonly pageTokenFile?: string
  readonly traceUrl?: string
}

export const TOKEN_FILE_OPTION = [
  '--page-token-file <file>',
  'the token of the page is read from this file, or made and written there, so that its link stays valid (default: a new token each time)',
] as const
export const TRACE_URL_OPTION = [
  '--trace-url <template>',
  'tasks of the page link to their traces, such as https://jaeger.example/trace/{trace_id} (default: they do not)',
] as const

/**
 * @param option the name of the option that sets the port, for errors
 * @throws INVALID_INPUT for an invalid port
 */
export function readPageSettings(option: string, port: string | undefined, flags: PageFlags): PageSettings {
  const { pageTokenFile: tokenFile, traceUrl } = flags
  if (tokenFile === '') throw new InvalidInputError('--page-token-file', tokenFile, 'the name of a file')
  if (traceUrl !== undefined) checkTraceUrl(traceUrl, '--trace-url')
  return { port: port === undefined ? undefined : readInteger(option, port, 0, 65_535), tokenFile, traceUrl }
}

/**
 * Serves the page.
 * @throws INVALID_SETTING if the given port is in use
 * @throws INVALID_INPUT if the file of the token cannot be used
 */
export async function servePage(
  { port, tokenFile, traceUrl }: PageSettings,
  given: Omit<TaskPageOptions, 'port'>,
): Promise<TaskPage> {
  // The module is loaded only when it is needed.
  const { createTaskPage } = await import('../page/create-task-page.js')
  const token = tokenFile === undefined ? undefined : tokenOfFile(tokenFile, '--page-token-file')
  const options = { ...given, ...omitUndefined({ token, traceUrl }) }
  if (port !== undefined) return createTaskPage({ ...options, port })
  try {
    return await createTaskPage(options)
  } catch (error) {
    if (!(error instanceof InvalidSettingError)) throw error
    // Another program on this machine uses the default port, so the page gets a free port.
    return createTaskPage({ ...options, port: 0 })
  }
}
