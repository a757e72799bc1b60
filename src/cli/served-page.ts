/** The page of a command that serves tasks. */
import { InvalidSettingError } from '../errors.js'
import type { TaskPage, TaskPageOptions } from '../page/create-task-page.js'
import { readInteger } from './numbers.js'

/** Where a command serves the page. */
export interface PageSettings {
  /** Undefined for the default port, or a free one if that is taken. */
  readonly port: number | undefined
}

/** @param option the name of the option, for errors */
export function readPagePort(option: string, port: string | undefined): PageSettings {
  return { port: port === undefined ? undefined : readInteger(option, port, 0, 65_535) }
}

/** @throws InvalidSettingError for a given port that is in use */
export async function servePage({ port }: PageSettings, options: Omit<TaskPageOptions, 'port'>): Promise<TaskPage> {
  // Loaded on demand.
  const { createTaskPage } = await import('../page/create-task-page.js')
  if (port !== undefined) return createTaskPage({ ...options, port })
  try {
    return await createTaskPage(options)
  } catch (error) {
    if (!(error instanceof InvalidSettingError)) throw error
    // Another server on this machine uses the default port.
    return createTaskPage({ ...options, port: 0 })
  }
}
