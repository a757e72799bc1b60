/** Validates what `getAsyncTaskManager` of a host returns. A host without types may return any value. */
import { InvalidInputError } from '../errors.js'
import { AsyncTaskManager } from './manager.js'

/**
 * Returns the manager.
 * @throws INVALID_INPUT if `getAsyncTaskManager` returns anything else
 */
export function givenManager(options: { readonly getAsyncTaskManager: () => AsyncTaskManager }): AsyncTaskManager {
  const manager: unknown = options.getAsyncTaskManager()
  if (manager instanceof AsyncTaskManager) return manager
  throw new InvalidInputError('options.getAsyncTaskManager()', manager, 'an AsyncTaskManager')
}
