/** Loads modules that need the optional packages `bullmq` and `ioredis`. */
import { AgentTasksError } from '../errors.js'

/**
 * Calls `load`, and explains which packages are missing if it fails because of them.
 * @param load imports the modules
 * @throws AgentTasksError `PACKAGES_MISSING` when one of the packages is not installed
 */
export async function loadBullmq<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    if ((cause as { readonly code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    const message =
      'Tasks of several machines need the packages bullmq and ioredis. Run: npm install bullmq@6 ioredis@5'
    throw new AgentTasksError('PACKAGES_MISSING', message, { cause })
  }
}
